"""The destination VM's end: endpoints on loopback, one for each port of a source broker.

While the server is away, connections are reset at once instead of left hanging, so that Kafka clients see a broker that
is down. Every connection to an endpoint becomes one TLS connection to the server, over TCP or in a channel of an SSH
connection (``dialler``).
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Iterator
from typing import Self

from appliance.clock import deadline, loop_seconds
from appliance.errors import (
    ApplianceError,
    ClockDiffers,
    ForwardRefused,
    HelloUnanswered,
    HostKeyDiffers,
    IdentityRefused,
    LoginRefused,
    NoSshServer,
    OutOfDescriptors,
    PeerError,
    SettingsError,
    SshUnreachable,
    TargetRefused,
    Unreachable,
)
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tls.identity import CLOCK_REMEDY, REMEDY, SILENCE_REMEDY, Identity
from appliance.tunnel.dialler import dialler, request_status, request_target
from appliance.tunnel.limits.breaker import Breaker, BreakerState
from appliance.tunnel.limits.connection_limit import FD_REMEDY, ConnectionLimit
from appliance.tunnel.limits.counters import Counters, Refusal
from appliance.tunnel.limits.pending_handshakes import HANDSHAKES_AT_ONCE
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.outage_log import OutageLog
from appliance.tunnel.stream.channel import Channel
from appliance.tunnel.stream.listen import Connections, Listener, listen
from appliance.tunnel.stream.relay import relay
from appliance.tunnel.stream.tcp_channel import TcpChannel
from appliance.tunnel.stream.tls_channel import TlsChannel, client_channel

log = logging.getLogger("appliance.tunnel")

SSH_LINES = (
    (
        HostKeyDiffers,
        "SSH server refused, it has no pinned host key: check TUNNEL_SSH, and that TUNNEL_SSH_HOST_KEYS_FILE holds "
        "its Ed25519 host key",
    ),
    (
        LoginRefused,
        "SSH server refuses us: check the user of TUNNEL_SSH, and that its authorized_keys holds the public key of "
        "TUNNEL_SSH_KEY_FILE",
    ),
    (NoSshServer, "SSH server refused, what answers is no SSH server with an Ed25519 key: check TUNNEL_SSH"),
    (SshUnreachable, "SSH server unreachable: check TUNNEL_SSH, and that its firewall lets this VM in"),
    (
        ForwardRefused,
        "SSH server refuses to forward: allow it in its sshd_config by AllowTcpForwarding local and PermitOpen, and in "
        "authorized_keys",
    ),
)
"""The log line for each fault of the SSH server that carries the tunnel, with the remedy."""

_SERVER_LINES = (
    *SSH_LINES,
    (SettingsError, "SSH key files cannot be used: see the cause"),
    (HelloUnanswered, f"tunnel refused, the server hung up without a word, or is not there: {SILENCE_REMEDY}"),
    (ClockDiffers, f"tunnel refused, the two VMs do not accept each other by their clocks: {CLOCK_REMEDY}"),
    (IdentityRefused, f"tunnel refused, the two VMs do not accept each other: {REMEDY}"),
    (PeerError, "tunnel refused, what answers is not the tunnel server: check SOURCE_SIDE_TUNNEL_IP and TUNNEL_PORT"),
    (OutOfDescriptors, FD_REMEDY),
    (
        Unreachable,
        "tunnel server unreachable: check SOURCE_SIDE_TUNNEL_IP and TUNNEL_PORT, that the source VM is up, "
        "and that its firewall lets this VM, or the SSH server of TUNNEL_SSH, in",
    ),
)
_TARGET_LINES = (
    (
        TargetRefused,
        "target refused by the tunnel server: check SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN "
        "and TUNNEL_BROKER_NETWORKS on the source VM",
    ),
    (PeerError, "tunnel server speaks another CONNECT: both VMs must run the same version of the appliance"),
    (Unreachable, "target not reached from the source VM: check that it resolves and reaches the source brokers"),
)


class TunnelClient:
    """Carries connections from ``open_endpoint`` to ``drain``, or as a context manager."""

    def __init__(self, settings: TunnelSettings, identity: Identity, timeouts: Timeouts | None = None) -> None:
        self._settings = settings
        self._identity = identity
        self._timeouts = timeouts or Timeouts()
        self.dialler = dialler(settings, self._timeouts)
        self.counters = Counters()
        self._connections = Connections(self.counters)
        self._limit = ConnectionLimit(settings.connections_max, self._timeouts.slot, self.counters)
        self._handshakes = asyncio.Semaphore(HANDSHAKES_AT_ONCE)
        self.breaker = Breaker(random.random)
        self._servers = OutageLog("server", _SERVER_LINES, "tunnel server reached again")
        self._targets = OutageLog("target", _TARGET_LINES, "target reached again")
        self._listeners: list[Listener] = []

    async def open_endpoint(self, target: Target, address: str, port: int) -> int:
        """Carry connections to ``address`` and ``port`` (0 for any) to ``target``; return the port."""
        listener = await listen("TUNNEL_ENDPOINT_NETWORK", Target(address, port), lambda: self._channel(target))
        self._listeners.append(listener)
        return listener.port

    async def server_status(self) -> bytes:
        """The status document of the server's end.

        This is no broker's connection: it takes no slot, and its outcome is not counted, logged or reported to the
        breaker. While the breaker waits for the server to return, it is not tried.

        Raises:
            TargetRefused: the server is of an older release.
            ApplianceError: the server does not answer, or not with a document.
        """
        if self.breaker.state is not BreakerState.CLOSED:
            raise Unreachable(f"the tunnel server was not reached at the last attempt: {self.counters.server_fault}")
        async with deadline(self._timeouts.status, f"no status from {self._settings.server}"):
            return await self._request_status()

    async def _request_status(self) -> bytes:
        async with self._handshakes:
            far = await self._reach_server()
        try:
            document = await request_status(far, self._timeouts.status)
            await far.finish(self._timeouts.last_word)
        finally:
            far.reset()  # also when the last word is cut short; after a whole one there is nothing left to reset
        return document

    async def drain(self, seconds: float) -> None:
        """Close every endpoint, wait ``seconds`` for open connections to end, then reset the rest."""
        for listener in self._listeners:
            await listener.close()
        await self._connections.drain(seconds)
        await self.dialler.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.drain(0)

    def _channel(self, target: Target) -> TcpChannel:
        return TcpChannel(lambda channel: self._accept(channel, target))

    def _accept(self, near: Channel, target: Target) -> None:
        self.counters.accepted += 1
        self._connections.start(near, self._serve(near, target), f"tunnel connection to {target}")

    async def _serve(self, near: Channel, target: Target) -> None:
        with contextlib.suppress(Unreachable):  # no slot: it is logged, and the end of this task is a reset
            async with self._limit.slot():
                await self._carry(near, target)

    async def _carry(self, near: Channel, target: Target) -> None:
        far = await self._reach(near, target)
        if far:
            await self._relay(near, far, target)

    async def _relay(self, near: Channel, far: Channel, target: Target) -> None:
        peer = near.peer
        log.info("endpoint connection opened", extra={"fields": {"peer": peer, "target": str(target)}})
        summary = await relay(near, far, self._timeouts.linger, self._settings.idle_seconds, self.counters)
        fields = {"peer": peer, "target": str(target), **summary.fields()}
        log.info("endpoint connection closed", extra={"fields": fields})

    async def _reach(self, near: Channel, target: Target) -> Channel | None:
        """A channel to ``target``, for ``near`` to be relayed to; None when there is none; the reason is logged."""
        try:
            async with self._handshakes:
                if not self._admitted():
                    return None
                with self._reported_to_breaker():
                    far = await self._reach_server()
        except ApplianceError as error:
            self._server_failed(error)
            return None
        with contextlib.ExitStack() as unless_connected:
            unless_connected.callback(far.reset)
            if await self._connect(far, target):
                unless_connected.pop_all()
                return far
            near.reset()
            await far.finish(self._timeouts.last_word)
        return None

    async def _reach_server(self) -> TlsChannel:
        """A channel to the server, which has proved its identity."""
        keys = self._identity.tls
        with self.counters.dials.timed():
            far = await self.dialler.dial(lambda: client_channel(keys))
        try:
            with self.counters.handshakes.timed():
                self._identity.check(await far.handshake(self._timeouts.handshake))
        except ApplianceError as error:
            if isinstance(error, IdentityRefused):
                self._identity.refused(keys)
            self._connections.start(far, far.finish(self._timeouts.last_word), "last word to the tunnel server")
            raise
        except BaseException:
            far.reset()
            raise
        self._identity.accepted(keys)
        return far

    async def _connect(self, far: TlsChannel, target: Target) -> bool:
        """True if the server has connected ``far`` to ``target``; if not, the reason is logged."""
        try:
            with self._reported_to_breaker():
                answer = await request_target(far, target, self._timeouts.answer)
        except ApplianceError as error:
            self._server_failed(error)
            return False
        self._server_succeeded()
        failure = answer.error()
        if failure:
            self._targets.failed(str(target), failure)
            self.counters.target_failed(failure)
            return False
        self._targets.succeeded(str(target))
        return True

    def _admitted(self) -> bool:
        """True if the breaker admits a try now; the outcome has to be reported to it."""
        admitted = self.breaker.admits(loop_seconds())
        if not admitted:
            self.counters.refused[Refusal.AWAY] += 1
        return admitted

    @contextlib.contextmanager
    def _reported_to_breaker(self) -> Iterator[None]:
        """Report an unexpected end of a try as a failure, too: else the breaker would wait for its outcome forever."""
        try:
            yield
        except ApplianceError:
            raise
        except BaseException:
            self.breaker.failed(loop_seconds())
            raise

    def _server_failed(self, error: ApplianceError) -> None:
        self.breaker.failed(loop_seconds())
        self._servers.failed(str(self._settings.server), error)
        self.counters.peer_failed(error)
        self.counters.server_fault = str(error)

    def _server_succeeded(self) -> None:
        self.breaker.succeeded()
        self._servers.succeeded(str(self._settings.server))
        self.counters.server_fault = ""
