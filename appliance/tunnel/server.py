"""The source VM's end: admit, check the identity, read the CONNECT, take a slot, dial, relay; each under a timeout.

A peer whose first flight does not prove the secret gets no answer. An unauthenticated peer takes no slot, and no name
is resolved or target dialled for it. Only names on the allow-list are resolved.

A CONNECT to ``STATUS`` is answered with a document. It takes no slot, so it is answered when there is none, too. From
the beginning of its drain the server answers any CONNECT with ``Draining``.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Self

from appliance.clock import deadline, epoch_seconds, monotonic
from appliance.errors import ApplianceError, ClockDiffers, IdentityRefused, PeerError, TargetRefused, Unreachable
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tls.first_flight import Proof, ServerWire
from appliance.tls.identity import CLOCK_REMEDY, REMEDY, Identity
from appliance.tls.proof_check import ProofCheck
from appliance.tunnel.broker_dialer import BrokerDialer, Resolve
from appliance.tunnel.first_flight_reader import FirstFlights
from appliance.tunnel.limits.connection_limit import ConnectionLimit
from appliance.tunnel.limits.counters import Counters
from appliance.tunnel.limits.pending_handshakes import PendingHandshakes
from appliance.tunnel.model.connect import CONNECTED, DRAINING, STATUS, Answer, ConnectServer, Timeouts
from appliance.tunnel.outage_log import OutageLog
from appliance.tunnel.stream.listen import Connections, Listener, listen
from appliance.tunnel.stream.tls_channel import TlsChannel

log = logging.getLogger("appliance.tunnel")

_PEER_LINES = (
    (
        ClockDiffers,
        f"tunnel client refused: its hello or certificate is out of time, by the clock here: {CLOCK_REMEDY}",
    ),
    (IdentityRefused, f"tunnel port dialled by a stranger, or the client refused: {REMEDY}"),
    (TargetRefused, "target refused: the tunnel goes to names only"),
    (PeerError, "tunnel port dialled by another program than the tunnel client of the same version"),
    (Unreachable, "tunnel port dialled by a client that hung up before naming a target"),
)


_LOOPBACK = ("127.0.0.1", "::1")


class TunnelServer:
    """Listens from ``start`` to ``drain``, or as a context manager.

    ``clock`` is in seconds since 1970. ``status`` makes the document for the other end; None: there is none, as in
    older releases.
    """

    def __init__(
        self,
        settings: TunnelSettings,
        identity: Identity,
        resolve: Resolve,
        timeouts: Timeouts | None = None,
        clock: Callable[[], float] = epoch_seconds,
        status: Callable[[], bytes] | None = None,
    ) -> None:
        self._clock = clock
        self._status = status
        self._settings = settings
        self._identity = identity
        self._timeouts = timeouts or Timeouts()
        self.counters = Counters()
        self._connections = Connections(self.counters)
        # Through the source VM's own sshd, the peer comes from the source VM.
        expected = {_LOOPBACK if each.by_own_sshd else each.peer_addresses for each in settings.of_each_vm}
        self.pending = PendingHandshakes(tuple(itertools.chain(*expected)), self.counters)
        self._draining = False
        self._limit = ConnectionLimit(settings.connections_max, self._timeouts.slot, self.counters)
        proofs = ProofCheck(identity.tls.tokens, clock, monotonic, identity.exchange)
        hello = self._timeouts.hello
        self._first_flights = FirstFlights(proofs, self.pending, hello, self._proven, self._refused)
        # The peer's lines have a limit of their own, which no stranger can use up.
        self._peers = {expected: OutageLog("peer", _PEER_LINES, "tunnel client accepted") for expected in (True, False)}
        self._targets = BrokerDialer(settings, resolve, self._timeouts, self.counters)
        self._listener: Listener | None = None
        self.port = settings.listen.port

    async def start(self) -> None:
        """Listen; afterwards ``port`` is known."""
        variables = "TUNNEL_LISTEN, TUNNEL_PORT"
        self._listener = await listen(
            variables, self._settings.listen, self._first_flights.reader, self._first_flights.admits
        )
        self.port = self._listener.port

    @property
    def listening(self) -> bool:
        """True if new connections are accepted."""
        return self._listener is not None and self._listener.listening

    async def drain(self, seconds: float) -> None:
        """Refuse new connections, wait ``seconds`` for open ones to end, then reset the rest."""
        self._draining = True
        await self._connections.drain(seconds)
        if self._listener:
            await self._listener.close()
        self._first_flights.close()
        await self._connections.drain(0)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.drain(0)

    def _refused(self, host: str, error: ApplianceError) -> None:
        """Log and count a peer at ``host`` that is refused."""
        self._peers[self.pending.expects(host)].failed(host, error)
        self.counters.peer_failed(error)

    def _proven(self, transport: asyncio.Transport, proof: Proof) -> TlsChannel:
        """The channel of a connection whose first flight has proved the secret."""
        channel = TlsChannel(
            self._identity.tls.context, lambda _channel: self._accept(channel), ServerWire(proof.token)
        )
        channel.connection_made(transport)
        channel.begun_with(proof.hello)
        return channel

    def _accept(self, channel: TlsChannel) -> None:
        self.counters.accepted += 1
        self._connections.start(channel, self._serve(channel), f"tunnel connection from {channel.peer}")

    async def _serve(self, near: TlsChannel) -> None:
        host = near.peer.rpartition(":")[0]
        with self.pending.present(host):
            if not await self._check_identity(near, host):
                return
        connect = ConnectServer()
        try:
            with self._limit.room():
                await self._answer(near, connect, host)
        except Unreachable as error:
            await self._refuse(near, connect, error)

    async def _check_identity(self, near: TlsChannel, host: str) -> bool:
        """True if the peer has proved that it is the other end of this link; if not, it has been refused."""
        try:
            with self.counters.handshakes.timed():
                self._identity.check(await near.handshake(self._timeouts.handshake))
        except ApplianceError as error:
            self._refused(host, error)
            await self._refuse(near, ConnectServer(), error)
            return False
        self.pending.proved(host)
        return True

    async def _answer(self, near: TlsChannel, connect: ConnectServer, host: str) -> None:
        """Read the CONNECT, and do it."""
        try:
            target = await self._read_target(near, connect)
        except ApplianceError as error:
            self._refused(host, error)
            await self._refuse(near, connect, error)
            return
        self._peers[self.pending.expects(host)].succeeded(host)
        if self._draining:
            await self._refuse(near, connect, DRAINING)
            return
        if self._status and target == STATUS:
            with self.counters.set_aside():
                near.send(connect.answer(CONNECTED, self._clock()) + self._status())
                await near.finish(self._timeouts.last_word)
            return
        async with self._limit.slot():
            await self._carry(near, connect, target)

    async def _carry(self, near: TlsChannel, connect: ConnectServer, target: Target) -> None:
        try:
            far = await self._targets.dial(target)
        except ApplianceError as error:
            await self._refuse(near, connect, error)
            return
        near.send(connect.answer(CONNECTED, self._clock()))
        await self._targets.carry(near, far, target)

    async def _refuse(self, near: TlsChannel, connect: ConnectServer, error: ApplianceError) -> None:
        """Send the reason, if TLS stands; if it does not, its alert has said so."""
        near.send(connect.answer(Answer.to(error), self._clock()))
        await near.finish(self._timeouts.last_word)

    async def _read_target(self, near: TlsChannel, connect: ConnectServer) -> Target:
        target = None
        async with deadline(self._timeouts.head, "no CONNECT request", PeerError):
            while target is None:
                target = connect.receive(await near.receive())
        return target
