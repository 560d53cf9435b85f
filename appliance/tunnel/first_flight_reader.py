"""Connections that were accepted, until their first flight has come: each goes on as a channel, or ends in silence.

This is all that a stranger can make the server do, so it is little: no task, no TLS, no byte sent.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from appliance.errors import ApplianceError, TimedOut, Unreachable
from appliance.tunnel.first_flight import Proof
from appliance.tunnel.proof_check import ProofCheck
from appliance.tunnel.strangers import Strangers
from appliance.tunnel.tcp_channel import FIRST_READ_SIZE, READ_BUFFER

Proven = Callable[[asyncio.Transport, Proof], asyncio.BufferedProtocol]
Refused = Callable[[str, ApplianceError], None]


class FirstFlights:
    """Those of one server that are under way.

    Args:
        proofs: decides on them.
        strangers: where each is counted until it is over.
        seconds: how long each may take.
        proven: makes what reads a connection from its proof on.
        refused: told the peer's address and the fault of each that proves nothing.
    """

    def __init__(
        self, proofs: ProofCheck, strangers: Strangers, seconds: float, proven: Proven, refused: Refused
    ) -> None:
        self.examine = proofs.examine
        self.seconds = seconds
        self.proven = proven
        self._strangers = strangers
        self._refused = refused
        self._under_way: set[FirstFlightReader] = set()

    def reader(self) -> "FirstFlightReader":
        """The protocol of one more connection."""
        return FirstFlightReader(self)

    def begun(self, reader: "FirstFlightReader") -> None:
        """The connection of ``reader`` stands."""
        self._under_way.add(reader)
        self._strangers.arrived(reader.host)

    def over(self, reader: "FirstFlightReader", error: ApplianceError | None) -> None:
        """Nothing more is read by ``reader``; ``error`` is why, unless a proof has come."""
        self._under_way.discard(reader)
        self._strangers.left(reader.host)
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
        """Called by asyncio: where to read to."""
        return READ_BUFFER[:FIRST_READ_SIZE]

    def buffer_updated(self, nbytes: int) -> None:
        """Called by asyncio: so many bytes were read."""
        if self._over:
            return
        self._received += bytes(READ_BUFFER[:nbytes])
        try:
            proof = self._flights.examine(self._received)
        except ApplianceError as error:
            self._end(error)
            self._transport.close()
            return
        if proof:
            self._end(None)
            self._transport.set_protocol(self._flights.proven(self._transport, proof))

    def eof_received(self) -> bool:
        """Called by asyncio: the peer has no more to say. False: asyncio closes."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Called by asyncio: the socket is closed."""
        self._end(Unreachable("it hung up before its first flight had come"))

    def abort(self) -> None:
        """Give the connection up; nobody is told."""
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
