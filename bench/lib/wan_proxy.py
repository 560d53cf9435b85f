"""The long line as a program: a TCP proxy with a delay and a limited bandwidth.

``python -m bench.lib.wan_proxy --round-trip SECONDS --bandwidth BYTES_A_SECOND LISTEN=TARGET...`` prints ``ready`` when
it listens. All connections share the bandwidth of each direction. The proxy ends TCP on both sides, so no window and no
slow start limits a connection, and all connections are equal. Its memory holds at most the bytes in flight and in the
queue, for each connection whose receiver does not read.
"""

import argparse
import asyncio
import contextlib
import functools
from dataclasses import dataclass

from appliance.settings.target import Target

_FIN_BYTES = 1
_QUEUE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Route:
    """One route of the proxy: the address on which it listens, and its target."""

    listen: Target
    target: Target

    @classmethod
    def parse(cls, text: str) -> "Route":
        """``host:port=host:port``."""
        listen, _, target = text.partition("=")
        return cls(Target.parse(listen), Target.parse(target))

    def __str__(self) -> str:
        return f"{self.listen}={self.target}"


@dataclass(slots=True)
class Line:
    """One direction of the line; all connections share it, first come, first served.

    ``bandwidth`` is in bytes a second, and ``delay`` is the time of flight. At its entrance is a queue of 20 ms, as in
    a router. If the queue is full, the sender waits, so no bytes are lost. Times are in seconds of one clock.
    """

    bandwidth: float
    delay: float
    _free_at: float = 0.0

    def enter(self, now: float, size: int) -> float:
        """Queue these bytes at ``now``; return the time at which the last of them comes out.

        Each time is greater than the previous one, so bytes keep their order.
        """
        self._free_at = max(self._free_at, now) + size / self.bandwidth
        return self._free_at + self.delay

    @property
    def open_at(self) -> float:
        """The earliest time at which the queue has room."""
        return self._free_at - _QUEUE_SECONDS


class _End(asyncio.Protocol):
    """One end of a connection: its peer receives its bytes after the line's delay."""

    def __init__(self, line: Line, peer: "_End | None" = None) -> None:
        self.peer = peer
        self._line = line
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._holds = 0
        self._ends = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self.peer is None:
            return
        self._loop.call_at(self._line.enter(self._loop.time(), len(data)), self.peer.hear, data)
        if self._line.open_at > self._loop.time():
            self.hold()
            self._loop.call_at(self._line.open_at, self.release)

    def eof_received(self) -> bool:
        if self.peer is not None:
            self._loop.call_at(self._line.enter(self._loop.time(), _FIN_BYTES), self.peer.hear_end)
        self._end()
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        if self.peer is not None:
            self._loop.call_at(self._line.enter(self._loop.time(), _FIN_BYTES), self.peer.close)

    def pause_writing(self) -> None:
        if self.peer is not None:
            self.peer.hold()

    def resume_writing(self) -> None:
        if self.peer is not None:
            self.peer.release()

    def hear(self, data: bytes) -> None:
        """Write what the peer has sent."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def hear_end(self) -> None:
        """The peer has ended its direction."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()
            self._end()

    def close(self) -> None:
        """The peer has closed the connection."""
        if self._transport is not None:
            self._transport.close()

    def hold(self) -> None:
        """Stop reading until every caller has resumed it."""
        self._holds += 1
        if self._transport is not None and self._holds == 1:
            self._transport.pause_reading()

    def release(self) -> None:
        """Resume reading, unless another caller still holds it."""
        self._holds -= 1
        if self._transport is not None and self._holds == 0:
            self._transport.resume_reading()

    def _end(self) -> None:
        """One of the two directions has ended."""
        self._ends += 1
        if self._ends == 2:
            self.close()


class _Near(_End):
    """The end that has dialled the proxy; the other end is dialled a round trip later, the time of a handshake."""

    def __init__(self, target: Target, there: Line, back: Line) -> None:
        super().__init__(there)
        self._target = target
        self._back = back
        self._dialling: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.hold()
        self._dialling = self._loop.create_task(self._dial(), name=f"dial {self._target}")

    def connection_lost(self, _error: Exception | None) -> None:
        super().connection_lost(_error)
        if self._dialling is not None:
            self._dialling.cancel()

    async def _dial(self) -> None:
        await asyncio.sleep(self._line.delay + self._back.delay)
        far = _End(self._back, self)
        try:
            await self._loop.create_connection(lambda: far, self._target.host, self._target.port)
        except OSError:
            self.close()
            return
        self.peer = far
        self.release()


async def _serve(routes: list[Route], there: Line, back: Line) -> None:
    loop = asyncio.get_running_loop()
    async with contextlib.AsyncExitStack() as stack:
        for route in routes:
            near = functools.partial(_Near, route.target, there, back)
            server = await loop.create_server(near, route.listen.host, route.listen.port)
            await stack.enter_async_context(server)
        print("ready", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Carry bytes until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round-trip", type=float, required=True)
    parser.add_argument("--bandwidth", type=float, required=True)
    parser.add_argument("routes", type=Route.parse, nargs="+")
    options = parser.parse_args()
    there, back = (Line(options.bandwidth, options.round_trip / 2) for _ in range(2))
    asyncio.run(_serve(options.routes, there, back))


if __name__ == "__main__":
    main()
