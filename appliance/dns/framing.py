"""DNS messages on a TCP connection: each behind its length as u16 (RFC 1035, section 4.2.2)."""

import asyncio
import struct

_LENGTH = struct.Struct("!H")


def framed(message: bytes) -> bytes:
    """The message behind its length."""
    return _LENGTH.pack(len(message)) + message


async def read_framed(reader: asyncio.StreamReader) -> bytes:
    """The next message of a connection.

    Raises:
        asyncio.IncompleteReadError: the peer closed.
        OSError: the connection broke.
    """
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)
