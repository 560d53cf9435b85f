"""Answers that no broker should give: valid ones of every response that is used, then damaged, fed to a connection."""

import asyncio
import importlib
import inspect
import io
import pkgutil
import socket
import uuid
from collections.abc import Iterator
from typing import Any, cast

from hypothesis import strategies as st
from kio.schema.fetch.v12.response import FetchResponse
from kio.schema.metadata.v11 import MetadataResponse
from kio.serial import entity_writer
from kio.static.primitive import Records, i32
from kio.static.protocol import ResponsePayload

import appliance.kafka.client as client
from appliance.errors import ApplianceError
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.fetch import FetchExchange, FetchLimits
from appliance.kafka.protocol import metadata
from appliance.kafka.protocol.older import OlderExchange, of_version
from appliance.kafka.protocol.versions import OLDEST
from appliance.kafka.protocol.wire import SIZE, Exchange, TypedExchange
from appliance.settings.target import Target

TARGET = Target("b0.orange.example", 9092)
TOPIC = uuid.UUID(int=7)

_REQUEST: Any = None
st.register_type_strategy(Records, st.binary(max_size=100).map(Records))


def responses() -> list[type[ResponsePayload]]:
    """Every response that the client reads, in each of its versions that is used."""
    found = {
        kind
        for module in pkgutil.iter_modules(client.__path__)
        for kind in vars(importlib.import_module(f"{client.__name__}.{module.name}")).values()
        if inspect.isclass(kind) and hasattr(kind, "__api_key__") and kind.__name__.endswith("Response")
    }
    oldest = {request.__api_key__: version for request, version in OLDEST.items()}
    kinds = sorted(found, key=lambda kind: kind.__name__)
    return [FetchResponse, *(of_version(kind, version) for kind in kinds for version in _versions(kind, oldest))]


def _versions(kind: type[ResponsePayload], oldest: dict[Any, int]) -> Iterator[int]:
    newest = int(kind.__version__)
    yield from range(oldest.get(kind.__api_key__, newest), newest + 1)


def exchanges(kind: type[ResponsePayload]) -> list[Exchange[Any]]:
    """The client's exchanges that read this response."""
    if kind is FetchResponse:
        limits, names = FetchLimits(1000, 0.1), {TOPIC.bytes: "orders"}
        return [FetchExchange((), limits, by_id, names) for by_id in (True, False)]
    newest = max((each for each in responses() if each.__name__ == kind.__name__), key=lambda each: each.__version__)
    typed: TypedExchange[Any] = (
        TypedExchange(_REQUEST, kind) if kind is newest else OlderExchange(_REQUEST, newest, int(kind.__version__))
    )
    return [typed, metadata.EverythingExchange(metadata.Everything(), typed)] if newest is MetadataResponse else [typed]


def content(answer: ResponsePayload, correlation: int = 1) -> bytes:
    """A frame's content."""
    body = io.BytesIO()
    schema = answer.__header_schema__
    entity_writer(schema)(body, schema(correlation_id=i32(correlation)))
    entity_writer(type(answer))(body, answer)
    return body.getvalue()


@st.composite
def frames(draw: st.DrawFn, kind: type[ResponsePayload]) -> bytes:
    """The content of a frame with this response: whole, or damaged at some places."""
    whole = bytearray(content(draw(st.from_type(kind))))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(SIZE.size, len(whole)))
        size = draw(st.sampled_from([0, 1, 2, 4, 8, 1000]))
        whole[at : at + size] = draw(st.one_of(st.binary(max_size=10), st.sampled_from(EXTREMES)))
    return bytes(whole)


EXTREMES = (b"\xff" * 4, b"\xff" * 8, b"\x7f" + b"\xff" * 3, b"\x7f" + b"\xff" * 7, b"\xff" * 9 + b"\x01", b"\x80" * 12)
"""The ends of the numbers' ranges: minus one, the largest, varints that do not end."""


class _Transport:
    """A transport that takes everything."""

    def __init__(self, own: socket.socket) -> None:
        self._own = own

    def get_extra_info(self, _: str) -> socket.socket:
        return self._own

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: False


def outcome(exchange: Exchange[Any], frame: bytes) -> Any:
    """What a request gets: the answer in the frame, or the error; any other than the project's own is raised."""

    async def ask() -> Any:
        with socket.socket() as own:
            connection = BrokerConnection(TARGET, "test")
            connection.connection_made(cast("asyncio.BaseTransport", _Transport(own)))
            asked = await connection.send(_Prepared(exchange))
            feed(connection, SIZE.pack(len(frame)) + frame)
            try:
                return asked.result() if asked.done() else None
            except ApplianceError as error:
                return error
            finally:
                await connection.close()

    return asyncio.run(ask())


class _Prepared:
    """An exchange whose request is of no interest."""

    def __init__(self, exchange: Exchange[Any]) -> None:
        self.name, self.answer = exchange.name, exchange.answer

    def frame(self, correlation: int, client_id: str) -> bytes:  # noqa: ARG002
        return b""


def feed(connection: BrokerConnection, data: bytes | memoryview) -> None:
    """Let bytes come to a connection, until it is broken."""
    while data and connection._broken is None:
        buffer = connection.get_buffer(-1)
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        del buffer
        connection.buffer_updated(size)
        data = data[size:]
