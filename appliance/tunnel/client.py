"""The destination VM's end: endpoints on loopback, one for each port of a source broker.

While the server is away, connections are reset at once instead of left hanging, so that Kafka clients see a broker that
is down. Every connection to an endpoint becomes one TLS connection to the server, over TCP or in a channel of an SSH
connection (``dialler``).
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Coroutine, Iterator
from typing import Self

from appliance.clock import epoch_seconds, loop_seconds
from appliance.errors import (
    ApplianceError,
    ClockDiffers,
    Draining,
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
    TimedOut,
    Unreachable,
)
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tls.identity import CLOCK_REMEDY, REMEDY, SILENCE_REMEDY, Identity
from appliance.tunnel.dialler import TargetFailed
from appliance.tunnel.limits.connection_limit import FD_REMEDY, ConnectionLimit
from appliance.tunnel.limits.counters import Counters, Refusal
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.model.servers import HEAD_START, POLL_SECONDS, SILENCE_SECONDS, Condition, in_order
from appliance.tunnel.outage_log import OutageLog
from appliance.tunnel.source_vm import Away, SourceVm
from appliance.tunnel.stream.channel import Channel
from appliance.tunnel.stream.listen import Connections, Listener, listen
from appliance.tunnel.stream.relay import relay
from appliance.tunnel.stream.tcp_channel import TcpChannel
from appliance.tunnel.stream.tls_channel import TlsChannel

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
    (Draining, "tunnel server is being stopped: new connections go through another source VM, or wait for it"),
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
        self._timeouts = timeouts or Timeouts()
        self.counters = Counters()
        self._connections = Connections(self.counters)
        self._limit = ConnectionLimit(settings.connections_max, self._timeouts.slot, self.counters)
        twins = (identity, *(identity.twin() for _ in settings.others))
        self.vms = [
            SourceVm(each, twin, self._timeouts, self._connections)
            for each, twin in zip(settings.of_each_vm, twins, strict=True)
        ]
        self.counters.servers = self.vms
        self._servers = OutageLog("server", _SERVER_LINES, "tunnel server reached again")
        self._targets = OutageLog("target", _TARGET_LINES, "target reached again")
        self._listeners: list[Listener] = []

    async def open_endpoint(self, target: Target, address: str, port: int) -> int:
        """Carry connections to ``address`` and ``port`` (0 for any) to ``target``; return the port."""
        listener = await listen("TUNNEL_ENDPOINT_NETWORK", Target(address, port), lambda: self._channel(target))
        self._listeners.append(listener)
        return listener.port

    async def server_status(self) -> bytes:
        """The status document of the server's end; of several, of the first that is well.

        This is no broker's connection: it takes no slot, and its outcome is not counted, logged or recorded. During a
        server's pause, it is not tried.

        Raises:
            TargetRefused: the server is of an older release.
            ApplianceError: the server does not answer, or not with a document.
        """
        vm = next((each for each in self.vms if each.usable), None)
        if vm is None:
            raise Unreachable(f"the tunnel server was not reached at the last attempt: {self.counters.server_fault}")
        return await vm.status(self._timeouts.status)

    async def watch(self) -> None:
        """Poll the source VMs until cancelled, if there are several."""
        async with asyncio.TaskGroup() as polling:
            for vm in self.vms if self._settings.others else ():
                polling.create_task(self._watch(vm), name=f"polls of {vm.name}")

    async def _watch(self, vm: SourceVm) -> None:
        while True:
            with contextlib.suppress(ApplianceError), self._recorded(vm):
                await self._poll(vm)
            await asyncio.sleep(POLL_SECONDS)

    async def _poll(self, vm: SourceVm) -> None:
        due = loop_seconds() + SILENCE_SECONDS + POLL_SECONDS
        try:
            await vm.status(SILENCE_SECONDS)
        except TimedOut as error:
            if loop_seconds() > due:
                raise Away("this process stood still: the answer may have come") from error
            raise

    async def drain(self, seconds: float) -> None:
        """Close every endpoint, wait ``seconds`` for open connections to end, then reset the rest."""
        for listener in self._listeners:
            await listener.close()
        await self._connections.drain(seconds)
        await asyncio.gather(*(each.dialler.close() for each in self.vms))

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
        with contextlib.suppress(ApplianceError):  # it is logged, and the end of this task is a reset
            async with self._limit.slot():
                await self._carry(near, target)

    async def _carry(self, near: Channel, target: Target) -> None:
        vm, far = await self._reach(target)
        peer, ends = near.peer, (far, near)
        log.info("endpoint connection opened", extra={"fields": {"peer": peer, "target": str(target)}})
        vm.carried.add(ends)
        try:
            summary = await relay(near, far, self._timeouts.linger, self._settings.idle_seconds, self.counters)
        finally:
            vm.carried.discard(ends)
        fields = {"peer": peer, "target": str(target), **summary.fields()}
        log.info("endpoint connection closed", extra={"fields": fields})

    async def _reach(self, target: Target) -> "_Reached":
        """A source VM, and its channel to ``target``; if there is none, the reason is logged and counted."""
        vms = in_order(self.vms, loop_seconds, spread=self._settings.spread)
        tries = ((each.head_start, self._try(each, target, admitted=not each.usable)) if each else None for each in vms)
        try:
            reached = await _first_of(tries)
        except Away:
            self.counters.refused[Refusal.AWAY] += 1
            raise
        except TargetFailed as error:
            self._targets.failed(str(target), error.failure)
            self.counters.target_failed(error.failure)
            raise
        except ApplianceError as error:
            self.counters.peer_failed(error)
            raise
        self._targets.succeeded(str(target))
        return reached

    async def _try(self, vm: SourceVm, target: Target, *, admitted: bool) -> "_Reached":
        began = loop_seconds()
        with self._recorded(vm):
            channel = await vm.connect(target, admitted=admitted)
            vm.connected(loop_seconds() - began)
            return vm, channel

    @contextlib.contextmanager
    def _recorded(self, vm: SourceVm) -> Iterator[None]:
        """Record the outcome of a try, also of one that ends unexpectedly: else it would be waited for forever."""
        began = loop_seconds()
        try:
            yield
        except Away:
            raise
        except (TargetFailed, TargetRefused):  # an older release refuses to tell its status
            self._succeeded(vm)
            raise
        except ApplianceError as error:
            self._failed(vm, error, began)
            raise
        except asyncio.CancelledError:
            vm.given_up(loop_seconds())
            raise
        except BaseException:
            vm.pause(loop_seconds())
            raise
        self._succeeded(vm)

    def _failed(self, vm: SourceVm, error: ApplianceError, began: float) -> None:
        lost = vm.failed(error, began, loop_seconds(), epoch_seconds())
        self._servers.failed(vm.name, error)
        if not any(each.usable for each in self.vms):
            self.counters.server_fault = str(error)
        elif lost and vm.carried and any(each.usable and each.condition is Condition.WELL for each in self.vms):
            fields = {"server": vm.name, "condition": vm.condition.value, "connections": len(vm.carried)}
            log.warning("connections ended, to go on through another source VM", extra={"fields": fields})
            for end in itertools.chain(*vm.carried):  # both: a silent SSH server would keep the far one open
                end.reset()

    def _succeeded(self, vm: SourceVm) -> None:
        vm.succeeded(epoch_seconds())
        self._servers.succeeded(vm.name)
        self.counters.server_fault = ""


_Reached = tuple[SourceVm, TlsChannel]


async def _first_of(tries: "Iterator[tuple[float, Coroutine[None, None, _Reached]] | None]") -> _Reached:
    """The source VM that is reached first; the other tries are given up. If all fail, the last failure is raised.

    The next try begins when one has failed, or the head start of the last one is over. While none is admitted, the
    next one is asked for again, as long as another one runs.
    """
    running: set[asyncio.Task[_Reached]] = set()
    failure: BaseException = Away("no source VM is tried now")
    try:
        for following in itertools.chain(tries, itertools.repeat((None, None))):
            seconds, work = following or (HEAD_START, None)
            if work:
                running.add(asyncio.create_task(work, name="try of a source VM"))
            if not running:
                raise failure
            await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in [each for each in running if each.done()]:
                running.remove(task)
                if not (error := task.exception()):
                    return task.result()
                failure = failure if isinstance(failure, TargetFailed) else error
        raise failure
    finally:
        for task in running:
            task.cancel()
        for late in await asyncio.gather(*running, return_exceptions=True):
            if not isinstance(late, BaseException):
                late[1].reset()
