"""Messages in asyncio's streams."""

import asyncio

from appliance.sql.flight.messages import LEAD, Fields, decode


async def read_message(reader: asyncio.StreamReader) -> tuple[Fields, memoryview]:
    """The next message.

    Raises:
        OSError, IncompleteReadError: the connection has ended.
    """
    head, size = LEAD.unpack(await reader.readexactly(LEAD.size))
    fields = decode(await reader.readexactly(head))
    return fields, memoryview(await reader.readexactly(size))
