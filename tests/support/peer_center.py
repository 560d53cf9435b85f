"""Another link's control center, as far as a socket shows it, which may send anything."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from appliance.console.peer_centers import socket_of
from tests.support.patience import PATIENCE

CARD = {"link": "other", "replicator": "replicator-other", "source": "a", "destination": "b", "state": "copied"}


def answer(card: object) -> bytes:
    """An HTTP answer with a card."""
    body = json.dumps(card).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body)


@dataclass(slots=True)
class PeerCenter:
    """``heard`` has the bytes of each connection."""

    heard: list[bytes] = field(default_factory=list)
    cut: asyncio.Event = field(default_factory=asyncio.Event)

    async def until_cut(self) -> None:
        """Wait until somebody did not want to hear more."""
        async with asyncio.timeout(PATIENCE):
            await self.cut.wait()


@contextlib.asynccontextmanager
async def peer_center(
    directory: Path, sent: bytes | None, link: str = "other", *, endless: bool = False
) -> AsyncIterator[PeerCenter]:
    """Answer every request on a link's socket with ``sent``, and then without end; with None, say nothing."""
    made = PeerCenter()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            made.heard.append(await reader.readuntil(b"\r\n\r\n"))
            if sent is None:
                await reader.read()
            writer.write(sent or b"")
            while endless:
                writer.write(b"x" * 10_000)
                await writer.drain()
        except ConnectionError:
            made.cut.set()
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, socket_of(directory, link))
    try:
        yield made
    finally:
        server.close()
        socket_of(directory, link).unlink(missing_ok=True)
