"""A connection that was accepted, until its first flight has come: it goes on as a channel, or ends in silence.

This is all that a stranger can make the server do, so it is little: no task, no TLS, no byte sent.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from appliance.errors import ApplianceError, TimedOut, Unreachable
from appliance.tunnel.first_flight import Proof
from appliance.tunnel.tcp_channel import FIRST_READ_SIZE, READ_BUFFER

Examine = Callable[[bytes], Proof | None]
Proven = Callable[[asyncio.Transport, Proof], asyncio.BufferedProtocol]
Ended = Callable[[str, ApplianceError | None], None]


class FirstFlightReader(asyncio.BufferedProtocol):
    """Reads the first flight of one connection.

    Args:
        examine: what becomes of these first bytes, as ``ProofCheck.examine``.
        seconds: how long they may take.
        arrived: told the peer's address when the connection stands.
        ended: told that address when reading is over; by what, unless by a proof.
        proven: makes what reads the connection from then on.
    """

    def __init__(
        self, examine: Examine, seconds: float, arrived: Callable[[str], None], ended: Ended, proven: Proven
    ) -> None:
        self._examine = examine
        self._seconds = seconds
        self._arrived = arrived
        self._ended = ended
        self._proven = proven
        self._received = b""
        self._over = False
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the connection stands."""
        self._transport = cast("asyncio.Transport", transport)
        host, *_ = transport.get_extra_info("peername") or ("unknown",)
        self._host: str = host
        self._arrived(host)
        self._deadline = asyncio.get_running_loop().call_later(self._seconds, self._too_late)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Called by asyncio: where to read to."""
        return READ_BUFFER[:FIRST_READ_SIZE]

    def buffer_updated(self, nbytes: int) -> None:
        """Called by asyncio: so many bytes were read."""
        self._received += bytes(READ_BUFFER[:nbytes])
        try:
            proof = self._examine(self._received)
        except ApplianceError as error:
            self._end(error)
            self._transport.close()
            return
        if proof:
            self._end(None)
            self._transport.set_protocol(self._proven(self._transport, proof))

    def eof_received(self) -> bool:
        """Called by asyncio: the peer has no more to say. False: asyncio closes."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Called by asyncio: the socket is closed."""
        self._end(Unreachable("it hung up before its first flight had come"))

    def _too_late(self) -> None:
        self._end(TimedOut(f"no TLS ClientHello within {self._seconds:g} s"))
        self._transport.abort()

    def _end(self, error: ApplianceError | None) -> None:
        if not self._over:
            self._over = True
            self._deadline.cancel()
            self._ended(self._host, error)
