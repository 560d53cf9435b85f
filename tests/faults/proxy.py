"""A TCP proxy with faults: its connections can be cut, slow, or open at one end only.

With TLS contexts it ends the TLS on both sides, so that what it carries can be read.
"""

import asyncio
import contextlib
import random
import socket
import ssl
import struct
from collections.abc import Awaitable
from dataclasses import dataclass, field

from appliance.settings.target import Target

_CHUNK = 64 * 1024
_SHARE = 0.5
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER of no seconds: closing sends RST, and nothing that still waits."""


@dataclass(frozen=True, slots=True)
class Tls:
    """The TLS of the proxy: its certificate for clients, and its trust in the broker."""

    serving: ssl.SSLContext
    dialling: ssl.SSLContext


@dataclass(eq=False, slots=True, weakref_slot=True)
class Wire:
    """One connection: both of its ends, and whether anything still gets through."""

    near: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    dead: bool = False

    @property
    def host(self) -> str:
        """The address that the connection comes from."""
        peer: tuple[str, int] = self.near[1].get_extra_info("peername") or ("", 0)
        return peer[0]

    def reset(self) -> ConnectionResetError:
        """RST to both ends; the error to raise where that was done in passing."""
        for _, writer in (self.near, self.far):
            reset(writer)
        return ConnectionResetError("reset by the proxy")


@dataclass(slots=True)
class Proxy:
    """Carries connections to ``listen`` to ``target``."""

    listen: Target
    target: Target
    tls: Tls | None = None
    _wires: dict[Wire, None] = field(default_factory=dict)
    _serving: set["asyncio.Task[None]"] = field(default_factory=set)
    _server: asyncio.Server | None = None
    _cut: bool = False
    _silent: bool = False
    _unheard: set[str] = field(default_factory=set)
    _delay: float = 0.0
    _bandwidth: float = float("inf")

    async def start(self) -> None:
        """Listen; port 0 becomes the one that was free."""
        context = self.tls.serving if self.tls else None
        self._server = await asyncio.start_server(self._accept, self.listen.host, self.listen.port, ssl=context)
        self.listen = Target(self.listen.host, int(self._server.sockets[0].getsockname()[1]))

    @property
    def wires(self) -> int:
        """The number of open connections."""
        return len(self._wires)

    async def close(self) -> None:
        """End all connections, and listen no more."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def cut(self) -> None:
        """Reset all connections, and every new one."""
        self._cut = True
        for wire in self._wires:
            wire.reset()

    def half_open(self) -> None:
        """Drop all bytes of all connections silently, until ``heal``."""
        self._silent = True
        for wire in self._wires:
            wire.dead = True

    def swallow(self, chance: random.Random) -> int:
        """Drop all bytes of some random connections; return their number. New connections work."""
        chosen = [wire for wire in self._wires if chance.random() < _SHARE]
        for wire in chosen:
            wire.dead = True
        return len(chosen)

    def silence(self, host: str) -> None:
        """Drop all bytes of that host's connections silently, and of its new ones until it is heard again."""
        self._unheard.add(host)
        for wire in self._wires:
            wire.dead = wire.dead or wire.host == host

    def hear(self, host: str) -> None:
        """Carry new connections of that host again."""
        self._unheard.discard(host)

    def slow(self, delay: float, bandwidth: float) -> None:
        """Each piece takes ``delay`` seconds, and as long as its bytes take at ``bandwidth`` bytes a second."""
        self._delay, self._bandwidth = delay, bandwidth

    def heal(self) -> None:
        """A good wire again, for new connections; what was cut or half-open stays so."""
        self._cut = self._silent = False
        self._delay, self._bandwidth = 0.0, float("inf")

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            # The task of a connection must not end with an error: asyncio would log it as nobody's.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            reset(writer)
            self._serving.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            return
        far = await self._dial()
        wire = Wire((reader, writer), far)
        wire.dead = self._silent or wire.host in self._unheard
        self._wires[wire] = None
        carried = (self._there(wire), self._back(wire))
        ways = [asyncio.create_task(_as_told(wire, way), name="proxy") for way in carried]
        try:
            await asyncio.gather(*ways)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            del self._wires[wire]
            reset(far[1])

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.tls is None:
            return await asyncio.open_connection(self.target.host, self.target.port)
        return await asyncio.open_connection(self.target.host, self.target.port, ssl=self.tls.dialling)

    async def _there(self, wire: Wire) -> None:
        """Carry bytes from the client to the target."""
        await self._carry(wire, wire.near[0], wire.far[1])

    async def _back(self, wire: Wire) -> None:
        """Carry bytes from the target to the client."""
        await self._carry(wire, wire.far[0], wire.near[1])

    async def _carry(self, wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            await self.pass_on(wire, writer, data)
        if wire.dead:
            await asyncio.Event().wait()
        if not writer.can_write_eof():
            raise ConnectionResetError("the end of one direction is the end of TLS")
        writer.write_eof()

    async def pass_on(self, wire: Wire, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Write, as well as the wire is."""
        if self._delay:
            await asyncio.sleep(self._delay + len(data) / self._bandwidth)
        if not wire.dead:
            writer.write(data)
            await writer.drain()


async def _as_told(wire: Wire, way: Awaitable[None]) -> None:
    """One direction to its end, of which a dead wire tells nobody."""
    try:
        await way
    except (OSError, asyncio.IncompleteReadError):
        if not wire.dead:
            raise
        await asyncio.Event().wait()


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by RST; nothing when it has ended."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
    writer.transport.abort()
