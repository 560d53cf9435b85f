"""A client of an endpoint with any transport behind it."""

import asyncio

from tests.support.tunnel import Link


async def exchange(link: Link, data: bytes) -> bytes:
    """Send ``data`` and end our direction, while reading up to the target's end; return the read bytes."""
    reader, writer = await link.connect()

    async def send() -> None:
        for start in range(0, len(data), 100_000):
            writer.write(data[start : start + 100_000])
            await writer.drain()
        writer.write_eof()

    received, _ = await asyncio.gather(reader.read(-1), send())
    writer.close()
    return received


async def echoed(endpoint: int, address: str = "127.0.0.1") -> bytes | None:
    """The answer to a byte sent to an endpoint; None when the connection is refused."""
    try:
        reader, writer = await asyncio.open_connection(address, endpoint)
        writer.write(b"x")
        byte = await reader.read(1)
    except ConnectionError:
        return None
    writer.close()
    return byte


async def until_echoed(endpoint: int, address: str = "127.0.0.1") -> None:
    """Wait until the endpoint's target echoes."""
    while await echoed(endpoint, address) != b"x":
        await asyncio.sleep(0.02)


async def refused(endpoint: int) -> bool:
    """True if a connection to an endpoint ends by a reset, before any byte."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint)
        await reader.read(-1)
    except ConnectionError:
        return True
    writer.close()
    return False
