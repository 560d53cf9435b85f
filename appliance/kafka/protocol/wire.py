"""Requests and responses as bytes: kio's typed dataclasses inside Kafka's length-prefixed frames.

A frame on the wire, big-endian (https://kafka.apache.org/protocol#protocol_common)::

    size i32 | header (api key i16, api version i16, correlation id i32, client id ...) | body

Produce and Fetch, which carry the record batches, are written and read by ``produce`` and ``fetch``.
"""

import datetime
import functools
import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.serial.readers import Reader
from kio.static.primitive import i32
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from appliance.errors import BatchCorrupt, PeerError
from appliance.kafka.protocol.lengths import walk

Response = TypeVar("Response", bound=ResponsePayload)
Answer = TypeVar("Answer", covariant=True)

SIZE = struct.Struct(">i")
FRAME_MAX = 128 * 1024 * 1024
"""Largest frame, in bytes. A larger one is garbage: a TLS alert, read as a size, gives 336 MiB."""


class Exchange(Protocol[Answer]):
    """One request, and the parser of its response."""

    @property
    def name(self) -> str:
        """The request's name, for people."""

    def frame(self, correlation: int, client_id: str) -> bytes | bytearray:
        """The request's whole frame, size first."""

    def answer(self, frame: bytearray, correlation: int) -> Answer:
        """The response in a frame's content (without its size)."""


def throttle_seconds(answer: object) -> float:
    """Time for which the broker reads nothing from the connection (KIP-219); 0: it reads on.

    Most of kio's responses have it.
    """
    time: datetime.timedelta | None = getattr(answer, "throttle_time", None)
    return max(time.total_seconds(), 0.0) if time else 0.0


@dataclass(frozen=True, slots=True)
class TypedExchange(Generic[Response]):
    """An exchange in kio's dataclasses: all except the two that carry record batches."""

    request: RequestPayload
    response_type: type[Response]

    @property
    def name(self) -> str:
        """The request's type."""
        return type(self.request).__name__

    def frame(self, correlation: int, client_id: str) -> bytes:
        """See ``Exchange``."""
        return encode(self.request, correlation, client_id)

    def answer(self, frame: bytearray, correlation: int) -> Response:
        """See ``Exchange``."""
        return decode(self.response_type, frame, correlation)


_reader = cast("Callable[[type[Entity]], Reader[Entity]]", functools.cache(entity_reader))


def encode(request: RequestPayload, correlation: int, client_id: str) -> bytes:
    """A request's frame, size first."""
    body = io.BytesIO()
    schema = request.__header_schema__
    header = schema(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(correlation),
        client_id=client_id,
    )
    entity_writer(schema)(body, header)
    entity_writer(type(request))(body, request)
    return SIZE.pack(body.tell()) + body.getvalue()


def decode(response_type: type[Response], frame: bytearray, correlation: int) -> Response:
    """The response in a frame's content (without its size)."""
    content = memoryview(frame).toreadonly()
    try:
        check_correlation(frame, correlation)
        begin = walk(response_type.__header_schema__)(frame, 0)
        walk(response_type)(frame, begin)
        response, _ = _reader(response_type)(content, begin)
    except (SerialError, BatchCorrupt, struct.error, ValueError, LookupError, OverflowError) as error:
        raise PeerError(f"the broker sent an unreadable {response_type.__name__}: {error}") from error
    assert isinstance(response, response_type)
    return response


def check_correlation(frame: bytearray, correlation: int) -> None:
    """Check that a response's frame answers the request with that correlation id.

    Raises:
        struct.error: it is cut short.
    """
    (answered,) = SIZE.unpack_from(frame)
    if answered != correlation:
        raise PeerError(f"the broker answered request {answered}, not {correlation}")
