"""Requests and responses as bytes: kio's typed dataclasses inside Kafka's length-prefixed frames.

A frame on the wire, big-endian (https://kafka.apache.org/protocol#protocol_common)::

    size i32 | header (api key i16, api version i16, correlation id i32, client id ...) | body

Record batches inside a Produce body are not copied into the frame: a frame is a list of buffers.
"""

import functools
import io
import struct
from collections.abc import Callable
from typing import TypeVar, cast

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.serial.readers import Reader
from kio.static.primitive import i16, i32
from kio.static.protocol import Entity, RequestPayload, ResponsePayload
from typing_extensions import Buffer

from appliance.errors import PeerError

Response = TypeVar("Response", bound=ResponsePayload)

SIZE = struct.Struct(">i")
FRAME_MAX = 128 * 1024 * 1024
"""A frame larger than this is taken for garbage: a TLS alert, read as a size, is one of 336 MiB."""

# Buffers from this size on are handed over as they are; smaller ones are joined.
_WHOLE = 4096


class _Pieces(io.BytesIO):
    """A sink for kio's writers that keeps large buffers by reference."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0
        self._small = bytearray()
        self._buffers: list[bytes | bytearray | memoryview] = []

    def write(self, data: Buffer, /) -> int:
        assert isinstance(data, bytes | bytearray | memoryview)
        size = len(data)
        self.size += size
        if size < _WHOLE:
            self._small += data
        else:
            self._flush()
            self._buffers.append(data)
        return size

    def _flush(self) -> None:
        if self._small:
            self._buffers.append(self._small)
            self._small = bytearray()

    def frame(self) -> list[bytes | bytearray | memoryview]:
        self._flush()
        return [SIZE.pack(self.size), *self._buffers]


_reader = cast("Callable[[type[Entity]], Reader[Entity]]", functools.cache(entity_reader))


def encode(request: RequestPayload, correlation: int, client_id: str) -> list[bytes | bytearray | memoryview]:
    """A request as the buffers of its frame, size first."""
    pieces = _Pieces()
    schema = request.__header_schema__
    header = schema(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(correlation),
        client_id=client_id,
    )
    entity_writer(schema)(pieces, header)
    entity_writer(type(request))(pieces, request)
    return pieces.frame()


def decode(response_type: type[Response], frame: bytearray, correlation: int) -> Response:
    """The response in a frame's content (without its size).

    Raises:
        PeerError: the bytes are not that response, or answer another request.
    """
    content = memoryview(frame).toreadonly()
    try:
        (answered,) = SIZE.unpack_from(content)
        if answered != correlation:
            raise PeerError(f"the broker answered request {answered}, not {correlation}")
        _, size = _reader(response_type.__header_schema__)(content, 0)
        response, _ = _reader(response_type)(content, size)
    except (SerialError, struct.error, ValueError) as error:
        raise PeerError(f"the broker sent an unreadable {response_type.__name__}: {error}") from error
    assert isinstance(response, response_type)
    return response


def api(request_type: type[RequestPayload]) -> tuple[i16, i16]:
    """The key and version of a request's API."""
    return request_type.__api_key__, request_type.__version__
