"""A proxy before a real broker that changes requests and answers, so that it appears as another broker.

It stands before a cluster of one broker, and names itself as that broker in every Metadata answer, so that no request
bypasses it. Frames are ``size i32 | API key i16 | version i16 | correlation i32 | ...`` on the way there and ``size i32
| correlation i32 | ...`` on the way back; answers come in the order of the requests.
"""

import asyncio
import collections
import contextlib
import enum
import importlib
import io
import struct
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8, i16, i32

from appliance.settings.target import Target
from tests.faults.proxy import Proxy, Wire
from tests.support.scripted_broker import framed

_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hhi")


class Api(enum.IntEnum):
    """The rewritten requests, by API key."""

    METADATA = 3
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DESCRIBE_CONFIGS = 32
    INCREMENTAL_ALTER_CONFIGS = 44


Rewritten = tuple[Any, Callable[[Any], Any]]
"""The forwarded request, and the change of its answer."""

Rewrite = Callable[[Any], Rewritten]


@dataclass(slots=True)
class Seeming:
    """The broker that the proxy simulates.

    ``offered`` are the lowest and highest versions of APIs, by key. A missing API is not offered, and its request ends
    the connection, as brokers do. If it is empty, the proxy offers all APIs of the real broker.
    """

    rewrites: Mapping[Api, Rewrite] = field(default_factory=dict)
    offered: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    asked: set[tuple[int, int]] = field(default_factory=set)
    beyond: set[tuple[int, int]] = field(default_factory=set)
    """API keys and versions that were requested, and those of them that were not offered."""


class RewritingProxy(Proxy):
    """A proxy that carries requests and answers frame by frame, and rewrites some."""

    def __init__(self, listen: Target, target: Target, seeming: Seeming) -> None:
        super().__init__(listen, target)
        self._seeming = seeming
        self._pending: weakref.WeakKeyDictionary[Wire, collections.deque[_Pending]] = weakref.WeakKeyDictionary()

    async def _there(self, wire: Wire) -> None:
        pending = self._pending.setdefault(wire, collections.deque())
        while True:
            frame = await _frame(wire.near[0])
            key, version, correlation = _HEAD.unpack_from(frame)
            self._seeming.asked.add((key, version))
            if not self._offers(key, version):
                self._seeming.beyond.add((key, version))
                raise wire.reset()
            asked, finish = frame, None
            if key in Api.__members__.values():
                asked, finish = self._rewritten(Api(key), version, correlation, frame)
            pending.append(finish)
            await self.pass_on(wire, wire.far[1], _SIZE.pack(len(asked)) + asked)

    async def _back(self, wire: Wire) -> None:
        while True:
            frame = await _frame(wire.far[0])
            finish = self._pending[wire].popleft()
            answer = finish(frame) if finish else _SIZE.pack(len(frame)) + frame
            await self.pass_on(wire, wire.near[1], answer)

    def _offers(self, key: int, version: int) -> bool:
        if not self._seeming.offered or key == Api.API_VERSIONS:
            return True
        low, high = self._seeming.offered.get(key, (0, -1))
        return low <= version <= high

    def _rewritten(self, api: Api, version: int, correlation: int, frame: bytes) -> tuple[bytes, "_Pending"]:
        module = importlib.import_module(f"kio.schema.{api.name.lower()}.v{version}")
        name = "".join(map(str.capitalize, api.name.split("_")))
        request_type, response_type = getattr(module, f"{name}Request"), getattr(module, f"{name}Response")
        rewrite = self._seeming.rewrites.get(api, lambda request: (request, lambda response: response))
        header_type = request_type.__header_schema__
        header, size = entity_reader(header_type)(memoryview(frame), 0)
        request, _ = entity_reader(request_type)(memoryview(frame), size)
        request, change = rewrite(request)

        def finish(answer: bytes) -> bytes:
            _, size = entity_reader(response_type.__header_schema__)(memoryview(answer), 0)
            response, _ = entity_reader(response_type)(memoryview(answer), size)
            return framed(self._as_this_broker(api, change(response)), correlation)

        body = io.BytesIO()
        entity_writer(header_type)(body, header)
        entity_writer(request_type)(body, request)
        return body.getvalue(), finish

    def _as_this_broker(self, api: Api, response: Any) -> Any:
        if api is Api.METADATA:
            here = {"host": self.listen.host, "port": i32(self.listen.port)}
            return replace(response, brokers=tuple(replace(broker, **here) for broker in response.brokers))
        if api is Api.API_VERSIONS and self._seeming.offered:
            return replace(response, api_keys=tuple(self._narrowed(response.api_keys)))
        return response

    def _narrowed(self, api_keys: Iterable[Any]) -> Iterable[Any]:
        for entry in api_keys:
            if (offered := self._seeming.offered.get(int(entry.api_key))) or entry.api_key == Api.API_VERSIONS:
                low, high = offered or (entry.min_version, entry.max_version)
                yield replace(entry, min_version=i16(low), max_version=i16(high))


_Pending = Callable[[bytes], bytes] | None


@contextlib.asynccontextmanager
async def seeming_broker(target: Target, seeming: Seeming) -> AsyncIterator[Target]:
    """The address at which the broker at ``target`` appears as another one."""
    proxy = RewritingProxy(Target("127.0.0.1", 0), target, seeming)
    await proxy.start()
    try:
        yield proxy.listen
    finally:
        await proxy.close()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """A frame without its size."""
    return await reader.readexactly(_SIZE.unpack(await reader.readexactly(_SIZE.size))[0])


def telling(entries: Mapping[str, str]) -> Rewrite:
    """DescribeConfigs of a broker whose topics also have these settings."""

    def tell(result: Any) -> Any:
        one = result.configs[0]
        more = (
            replace(one, name=key, value=value, config_source=type(one.config_source)(1))
            for key, value in entries.items()
        )
        return replace(result, configs=(*result.configs, *more))

    return lambda request: (
        request,
        lambda response: replace(response, results=tuple(tell(result) for result in response.results)),
    )


def naming(names: Mapping[str, str]) -> Rewrite:
    """DescribeConfigs of a broker with other names for settings; an empty name removes the setting."""

    def named(result: Any) -> Any:
        renamed = (replace(entry, name=names.get(entry.name, entry.name)) for entry in result.configs)
        return replace(result, configs=tuple(entry for entry in renamed if entry.name))

    return lambda request: (
        request,
        lambda response: replace(response, results=tuple(named(result) for result in response.results)),
    )


def forbidding(request: Any) -> Rewritten:
    """DescribeConfigs of a broker that returns nothing to this API key."""
    code = ErrorCode.topic_authorization_failed

    def forbid(result: Any) -> Any:
        return replace(result, error_code=code, error_message=None, configs=())

    return request, lambda response: replace(response, results=tuple(map(forbid, response.results)))


Policy = Callable[[str, Mapping[str, str | None]], str]
"""A function that returns the reason for refusing a topic of this name with these settings; empty to accept it."""


def creating(policy: Policy) -> Rewrite:
    """CreateTopics of a broker with a policy."""

    def rewrite(request: Any) -> Rewritten:
        asked = {topic.name: {one.name: one.value for one in topic.configs} for topic in request.topics}
        why = {name: words for name, configs in asked.items() if (words := policy(name, configs))}
        result = _schema("create_topics", request).CreatableTopicResult
        refused = tuple(
            result(name=name, topic_id=None, error_code=ErrorCode.policy_violation, error_message=words, configs=None)
            for name, words in why.items()
        )
        taken = tuple(topic for topic in request.topics if topic.name not in why)
        return replace(request, topics=taken), lambda response: replace(response, topics=response.topics + refused)

    return rewrite


def altering(policy: Policy) -> Rewrite:
    """IncrementalAlterConfigs of a broker with a policy."""

    def rewrite(request: Any) -> Rewritten:
        asked = {one.resource_name: {entry.name: entry.value for entry in one.configs} for one in request.resources}
        why = {name: words for name, configs in asked.items() if (words := policy(name, configs))}
        result = _schema("incremental_alter_configs", request).AlterConfigsResourceResponse
        code = ErrorCode.policy_violation
        refused = tuple(
            result(error_code=code, error_message=words, resource_type=i8(2), resource_name=name)
            for name, words in why.items()
        )
        taken = tuple(one for one in request.resources if one.resource_name not in why)
        return (
            replace(request, resources=taken),
            lambda response: replace(response, responses=response.responses + refused),
        )

    return rewrite


def _schema(api: str, request: Any) -> Any:
    return importlib.import_module(f"kio.schema.{api}.v{request.__version__}.response")
