"""A broker with scripted answers to two requests: ApiVersions, and Metadata with its list of brokers."""

import asyncio
import contextlib
import io
import struct
from collections.abc import AsyncIterator, Sequence

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.api_versions.v3.response import ApiVersion
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponseBroker
from kio.schema.types import BrokerId
from kio.serial import entity_writer
from kio.static.primitive import i16, i32
from kio.static.protocol import ResponsePayload

from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.versions import OLDEST
from appliance.settings.target import Target

_HEAD = struct.Struct(">ihhi")
_REQUEST_MAX = 100_000


@contextlib.asynccontextmanager
async def scripted_broker(address: str, port: int, brokers: Sequence[Target], newest: int = 99) -> AsyncIterator[None]:
    """A plain-text broker that lists ``brokers``, and offers each API up to version ``newest``."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                size, key, _, correlation = _HEAD.unpack(await reader.readexactly(_HEAD.size))
                if size > _REQUEST_MAX:
                    break  # the client speaks TLS
                await reader.readexactly(size - _HEAD.size + 4)
                answer = metadata_answer(brokers) if key == MetadataRequest.__api_key__ else versions(newest)
                writer.write(framed(answer, correlation))
        writer.close()

    server = await asyncio.start_server(serve, address, port)
    try:
        yield
    finally:
        server.close()


def versions(newest: int) -> ApiVersionsResponse:
    """Every API that the appliance uses, up to this version."""
    keys = {request.__api_key__: i16(newest) for request in OLDEST}
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(ApiVersion(api_key=key, min_version=i16(0), max_version=last) for key, last in keys.items()),
        throttle_time=milliseconds(0),
    )


def metadata_answer(brokers: Sequence[Target], throttled: float = 0) -> MetadataResponse:
    """These brokers, without topics; the connection is throttled for this number of seconds."""
    listed = (
        MetadataResponseBroker(node_id=BrokerId(node), host=target.host, port=i32(target.port))
        for node, target in enumerate(brokers)
    )
    return MetadataResponse(throttle_time=milliseconds(throttled), brokers=tuple(listed), topics=())


def framed(answer: ResponsePayload, correlation: int) -> bytes:
    """A response's frame."""
    body = io.BytesIO()
    schema = answer.__header_schema__
    entity_writer(schema)(body, schema(correlation_id=i32(correlation)))
    entity_writer(type(answer))(body, answer)
    return struct.pack(">i", body.tell()) + body.getvalue()
