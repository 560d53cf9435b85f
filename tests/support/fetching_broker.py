"""A source of one topic that keeps fetch sessions as in KIP-227, and breaks off its work at random."""

import asyncio
import contextlib
import random
import struct
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import FetchRequest, FetchResponse
from kio.schema.fetch.v13.response import FetchableTopicResponse, PartitionData
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v11.response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader
from kio.static.primitive import i32
from kio.static.protocol import ResponsePayload

from appliance.kafka.client.transactions import milliseconds
from appliance.settings.target import Target
from tests.support.batches import made, patched
from tests.support.scripted_broker import framed, versions

_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hhi")
_LOST = (
    ErrorCode.fetch_session_id_not_found,
    ErrorCode.invalid_fetch_session_epoch,
    ErrorCode.fetch_session_topic_id_error,
)
_MOVED = (ErrorCode.not_leader_or_follower, ErrorCode.unknown_topic_id)
_WHIMS = ("broke the connection", "had no room for a session", "ended the session", "denied a partition")
_BATCH = made([(0, b"key", b"v" * 100, []) for _ in range(40)])
RECORDS = 40
"""Records in each batch; a partition has an endless series of batches."""


@dataclass(slots=True)
class _Session:
    id: int
    epoch: int = 1
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Offset and maximum bytes, by partition."""


@dataclass
class FetchingBroker:
    """The broker: node 0, which leads every partition of ``topic``."""

    partitions: int
    chance: random.Random
    topic: str = "orders"
    topic_id: uuid.UUID = uuid.UUID(int=7)  # noqa: RUF009
    target: Target = field(init=False)
    refusals: dict[int, ErrorCode] = field(default_factory=dict)
    """The code that it has now instead of records, by partition."""
    misbehaved: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_WHIMS, 0))
    _session: _Session | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen on a free port of loopback."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.target = Target(*server.sockets[0].getsockname()[:2])
        try:
            yield
        finally:
            server.close()

    def _whim(self, name: str, likelihood: float) -> bool:
        taken = self.chance.random() < likelihood
        self.misbehaved[name] += taken
        return taken

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
                content = await reader.readexactly(size)
                key, _, correlation = _HEAD.unpack_from(content)
                answer = self._answer(key, content)
                if key == FetchRequest.__api_key__ and self._whim("broke the connection", 0.03):
                    break
                writer.write(framed(answer, correlation))
                await asyncio.sleep(0.002)
        writer.transport.abort()

    def _answer(self, key: int, content: bytes) -> ResponsePayload:
        if key == MetadataRequest.__api_key__:
            return self._metadata()
        if key != FetchRequest.__api_key__:
            return versions(newest=13)
        _, begins = entity_reader(FetchRequest.__header_schema__)(memoryview(content), 0)
        request, _ = entity_reader(FetchRequest)(memoryview(content), begins)
        return self._fetch(request)

    def _metadata(self) -> MetadataResponse:
        broker = MetadataResponseBroker(node_id=BrokerId(0), host=self.target.host, port=i32(self.target.port))
        epoch = self._leader_epoch()
        partitions = tuple(
            MetadataResponsePartition(
                error_code=ErrorCode.none,
                partition_index=i32(number),
                leader_id=BrokerId(0),
                leader_epoch=i32(epoch),
                replica_nodes=(),
                isr_nodes=(),
                offline_replicas=(),
            )
            for number in range(self.partitions)
        )
        topic = MetadataResponseTopic(
            error_code=ErrorCode.none,
            name=TopicName(self.topic),
            topic_id=self.topic_id,
            is_internal=False,
            partitions=partitions,
        )
        return MetadataResponse(throttle_time=milliseconds(0), brokers=(broker,), topics=(topic,))

    def _leader_epoch(self) -> int:
        return 0

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        session = self._session
        if request.session_epoch == 0:
            room = not self._whim("had no room for a session", 0.2)
            session = _Session(self.chance.randrange(1, 2**31) if room else 0)
            self._session = session if room else None
        elif session is None or (request.session_id, request.session_epoch) != (session.id, session.epoch):
            return self._refusal(ErrorCode.fetch_session_id_not_found)
        elif self._whim("ended the session", 0.1):
            self._session = None
            return self._refusal(self.chance.choice(_LOST))
        else:
            session.epoch += 1
        for asked in request.topics:
            for each in asked.partitions:
                session.offsets[each.partition] = (each.fetch_offset, each.partition_max_bytes)
        for forgotten in request.forgotten_topics_data:
            for number in forgotten.partitions:
                del session.offsets[number]
        partitions = tuple(self._partition(number, *asked) for number, asked in session.offsets.items())
        topic = FetchableTopicResponse(topic_id=self.topic_id, partitions=partitions)
        return self._response(session.id, (topic,) if partitions else ())

    def _partition(self, number: int, offset: int, most: int) -> PartitionData:
        moved = self._whim("denied a partition", 0.005)
        code = self.refusals.get(number) or (self.chance.choice(_MOVED) if moved else ErrorCode.none)
        first = offset // RECORDS
        count = min(self.chance.randrange(3), most // len(_BATCH))
        records = b"".join(patched(_BATCH, base_offset=(first + n) * RECORDS) for n in range(count))
        return PartitionData(
            partition_index=i32(number),
            error_code=code,
            high_watermark=0,
            last_stable_offset=0,
            log_start_offset=0,
            aborted_transactions=None,
            records=records if code is ErrorCode.none else b"",
        )

    def _refusal(self, code: ErrorCode) -> FetchResponse:
        return self._response(0, (), code)

    def _response(
        self, session: int, topics: tuple[FetchableTopicResponse, ...], code: ErrorCode = ErrorCode.none
    ) -> FetchResponse:
        return FetchResponse(throttle_time=milliseconds(0), error_code=code, session_id=i32(session), responses=topics)
