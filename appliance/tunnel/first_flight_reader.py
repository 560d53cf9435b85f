"""Accepted connections, until their first flight has arrived: each becomes a channel, or is closed silently.

A stranger gets no further than this, so it costs little: no task, no TLS, no byte sent.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from appliance.errors import ApplianceError, IdentityRefused, TimedOut, Unreachable
from appliance.tls.first_flight import Proof
from appliance.tls.proof_check import ProofCheck
from appliance.tunnel.limits.pending_handshakes import PendingHandshakes, Room
from appliance.tunnel.stream.tcp_channel import FIRST_READ_SIZE, READ_BUFFER

READS_MAX = 8
"""Most pieces in which a first flight may come: it fits into three packets, and each costs the server a call."""

Proven = Callable[[asyncio.Transport, Proof], asyncio.BufferedProtocol]
Refused = Callable[[str, ApplianceError], None]


class FirstFlights:
    """The connections of one server whose first flight has not come yet.

    Args:
        proofs: checks them.
        pending: counts each until it is over.
        seconds: longest time of each.
        proven: makes the protocol that continues after a proof.
        refused: called with the peer's address and the fault of each without a proof.
    """

    def __init__(
        self, proofs: ProofCheck, pending: PendingHandshakes, seconds: float, proven: Proven, refused: Refused
    ) -> None:
        self.examine = proofs.examine
        self.seconds = seconds
        self.proven = proven
        self._pending = pending
        self._refused = refused
        self._under_way: dict[FirstFlightReader, None] = {}
        self._of_one: dict[str, dict[FirstFlightReader, None]] = {}

    def admits(self, host: str) -> bool:
        """True if one more connection from ``host`` may be read; the oldest one may be closed for it."""
        room = self._pending.room(host)
        if room is not Room.FREE:
            self._pending.refused(host)
            if not self._replaced(self._of_one.get(host) if room is Room.ONE_FULL else self._under_way):
                return False
        if self._pending.within_rate(host):
            return True
        self._pending.refused(host)
        return False

    def _replaced(self, crowd: "dict[FirstFlightReader, None] | None") -> bool:
        """Close the oldest connection of a crowd; of all connections, the oldest that is not the peer's."""
        for reader in crowd or ():
            if crowd is not self._under_way or not self._pending.expects(reader.host):
                reader.abort()
                return True
        return False

    def reader(self) -> "FirstFlightReader":
        """The protocol of one more connection."""
        return FirstFlightReader(self)

    def begun(self, reader: "FirstFlightReader") -> None:
        """Register ``reader``, whose connection is established."""
        self._under_way[reader] = None
        self._of_one.setdefault(reader.host, {})[reader] = None
        self._pending.arrived(reader.host)

    def over(self, reader: "FirstFlightReader", error: ApplianceError | None) -> None:
        """Remove ``reader``, which has ended; ``error`` is the reason, None after a proof."""
        del self._under_way[reader]
        crowd = self._of_one[reader.host]
        del crowd[reader]
        if not crowd:
            del self._of_one[reader.host]
        self._pending.left(reader.host)
        if error:
            self._refused(reader.host, error)

    def close(self) -> None:
        """End all that are under way."""
        for reader in list(self._under_way):
            reader.abort()


class FirstFlightReader(asyncio.BufferedProtocol):
    """Reads the first flight of one connection; ``host`` is the peer's address."""

    def __init__(self, flights: FirstFlights) -> None:
        self.host = "unknown"
        self._flights = flights
        self._received = b""
        self._reads = 0
        self._over = False
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the connection stands."""
        self._transport = cast("asyncio.Transport", transport)
        self.host, *_ = transport.get_extra_info("peername") or ("unknown",)
        self._deadline = asyncio.get_running_loop().call_later(self._flights.seconds, self._too_late)
        self._flights.begun(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Called by asyncio: the buffer to read to."""
        return READ_BUFFER[:FIRST_READ_SIZE]

    def buffer_updated(self, nbytes: int) -> None:
        """Called by asyncio: ``nbytes`` bytes were read."""
        if self._over:
            return
        self._received += bytes(READ_BUFFER[:nbytes])
        self._reads += 1
        try:
            proof = self._flights.examine(self._received)
            if not proof and self._reads >= READS_MAX:
                raise IdentityRefused(f"its first flight has not come within {READS_MAX} pieces")
        except ApplianceError as error:
            self._end(error)
            self._transport.close()
            return
        if proof:
            self._end(None)
            self._transport.set_protocol(self._flights.proven(self._transport, proof))

    def eof_received(self) -> bool:
        """Called by asyncio: the peer has ended its direction. False: asyncio closes."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Called by asyncio: the socket is closed."""
        self._end(Unreachable("it hung up before its first flight had come"))

    def abort(self) -> None:
        """Close the connection; nothing is logged."""
        self._end(None)
        self._transport.abort()

    def _too_late(self) -> None:
        self._end(TimedOut(f"no TLS ClientHello within {self._flights.seconds:g} s"))
        self._transport.abort()

    def _end(self, error: ApplianceError | None) -> None:
        if not self._over:
            self._over = True
            self._deadline.cancel()
            self._flights.over(self, error)
