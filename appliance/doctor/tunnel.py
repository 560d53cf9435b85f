"""The checks of the tunnel, from the destination VM's end: its port, and mutual authentication."""

import errno
import ssl
from dataclasses import dataclass
from secrets import token_hex

from appliance.dns.invented import Resolve, labels, remedy, resolved_names
from appliance.doctor.brokers import RemoteDial
from appliance.doctor.clock import NTP, judge_skew
from appliance.doctor.step import Finding, Verdict, failed, passed, remedy_of, skipped, warning
from appliance.errors import (
    ApplianceError,
    ClockDiffers,
    ForwardRefused,
    HelloUnanswered,
    IdentityRefused,
    NameUnresolved,
    PeerError,
    TargetRefused,
    TimedOut,
    Unreachable,
)
from appliance.settings.target import Target
from appliance.settings.values import Side, TunnelSettings
from appliance.tls.identity import DAYS_WARNING, REMEDY, RENEWAL_REMEDY
from appliance.tunnel.client import SSH_LINES
from appliance.tunnel.probe import TlsProbe

_IN_A_CROWD = " (a tunnel server does that when too many strangers dial it: its log says so)"
_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH)


@dataclass(slots=True)
class TunnelChecks:
    """Tries the tunnel once, step by step: ``settings`` say where its server is, and ``here`` on which VM that is."""

    settings: TunnelSettings
    probe: TlsProbe
    here: Side
    _refused: IdentityRefused | None = None

    async def login(self) -> Finding:
        """Check the SSH server's host key, and log in."""
        try:
            await self.probe.login()
        except ApplianceError as error:
            return failed(str(error), remedy_of(error, SSH_LINES))
        return passed("logged in; its host key is a pinned one")

    async def forward(self) -> Finding:
        """Check that the SSH server permits forwarding to the tunnel server, and reaches it."""
        try:
            await self.probe.dial()
        except ForwardRefused as error:
            return failed(str(error), remedy_of(error, SSH_LINES))
        except ApplianceError as error:
            return failed(str(error), self._unforwarded())
        return passed(f"the SSH server reaches {self.settings.server}")

    async def port(self) -> Finding:
        """Check that the tunnel server listens at its port; tell closed, filtered and another server apart."""
        try:
            await self.probe.dial()
        except ApplianceError as error:
            return failed(str(error), self._unreached(error))
        try:
            await self.probe.greet()
        except IdentityRefused as error:
            self._refused = error  # ``identity`` finds out more
            if isinstance(error, HelloUnanswered):
                return passed(f"somebody at {self.settings.server} hangs up without an answer, as our server may")
            return passed(f"a tunnel server answers at {self.settings.server}")
        except ApplianceError as error:
            is_lost = isinstance(error, Unreachable) and not isinstance(error, TimedOut)
            return self._somebody_else(f"{error}{_IN_A_CROWD if is_lost else ''}")
        return passed(f"the tunnel server answers at {self.settings.server}")

    async def identity(self) -> Finding:
        """Check that both ends authenticate each other, and how far their clocks are apart."""
        if self._refused:
            return await self._unauthenticated(self._refused)
        try:
            answer = await self.probe.ask(self.settings.allowed.exact[0])
        except IdentityRefused as error:
            return await self._unauthenticated(error)
        if isinstance(answer.failure, PeerError):
            return failed(str(answer.failure), "run the same version of the appliance on both VMs")
        finding = judge_skew(answer.skew)
        return (self._soon() or finding) if finding.verdict is Verdict.PASSED else finding

    def _soon(self) -> Finding | None:
        """Warn of a certificate that expires soon, and of a previous secret that is still set."""
        for side, days in self.probe.days_left().items():
            if days < DAYS_WARNING:
                return warning(f"the certificate of the {side} VM ends in {days:.0f} days", RENEWAL_REMEDY)
        if self.settings.previous_secret:
            return warning(
                "both ends are authenticated; SHARED_SECRET_PREVIOUS is set",
                "remove it from this VM as soon as the source VM has the new SHARED_SECRET",
            )
        return None

    async def remote_dial(self, target: Target) -> None:
        """Have the source VM dial ``target``."""
        answer = await self.probe.ask(target)
        if answer.failure:
            raise type(answer.failure)(f"{answer.failure}, from the source VM at {self.settings.way}")

    def _unreached(self, error: ApplianceError) -> str:
        port = self.settings.server.port
        if self.here is Side.SOURCE:
            return f"nobody listens there: start `appliance source` on this VM, with this TUNNEL_PORT={port}"
        if isinstance(error, TimedOut):
            return (
                f"filtered: a firewall drops it: let TCP port {port} in at the source VM from "
                f"DESTINATION_SIDE_TUNNEL_IP={','.join(self.settings.peer_addresses)}, or correct SOURCE_SIDE_TUNNEL_IP"
            )
        if isinstance(error, NameUnresolved) or (
            isinstance(error.__cause__, OSError) and error.__cause__.errno in _NO_WAY
        ):
            return "no way there: check SOURCE_SIDE_TUNNEL_IP, this VM's routes, and that no firewall rejects it"
        return (
            "closed: nobody listens there: start `appliance source` on the source VM, check SOURCE_SIDE_TUNNEL_IP, and "
            f"set the same TUNNEL_PORT={port} on both VMs"
        )

    def _unforwarded(self) -> str:
        """The remedy when the SSH server does not reach the tunnel server."""
        server = self.settings.server
        if self.settings.by_own_sshd:
            return (
                f"nobody listens at {server} of the machine of TUNNEL_SSH: start `appliance source` there, with this "
                f"TUNNEL_PORT={server.port} and TUNNEL_LISTEN=127.0.0.1"
            )
        return (
            f"the SSH server does not reach {server}: start `appliance source` on the source VM, let TCP port "
            f"{server.port} in there from the SSH server, and check SOURCE_SIDE_TUNNEL_IP={server.host}"
        )

    def _somebody_else(self, detail: str) -> Finding:
        server = self.settings.server
        if self.here is Side.SOURCE:
            remedy = (
                f"another program has TUNNEL_PORT={server.port} of this VM: end it, or choose another port on both VMs"
            )
        else:
            remedy = (
                f"wrong machine, or another program on it: check SOURCE_SIDE_TUNNEL_IP={server.host} and "
                f"TUNNEL_PORT={server.port}"
            )
        return failed(f"{server}: {detail}", remedy)

    async def _unauthenticated(self, error: IdentityRefused) -> Finding:
        if isinstance(error, ClockDiffers):
            by_us = isinstance(error.__cause__, ssl.SSLCertVerificationError)
            how = "behind" if by_us else "ahead of"
            return failed(
                str(error), f"clock skew: this VM's clock is {how} the other's, or a certificate is old: {NTP}"
            )
        if isinstance(error, HelloUnanswered):
            return await self._unanswered(error)
        return failed(str(error), REMEDY)

    async def _unanswered(self, error: HelloUnanswered) -> Finding:
        """The finding when the server stays silent: the clock, or another input of the first flight's proof."""
        try:
            skew = await self.probe.skew()
        except ApplianceError:
            skew = None
        if skew is not None:
            how = "ahead of" if skew > 0 else "behind"
            detail = f"the source VM's clock is about {abs(skew) / 60:.0f} minutes {how} this VM's"
            return failed(detail, f"clock skew: of the clock that is wrong: {NTP}")
        return failed(
            str(error),
            "set the same SHARED_SECRET, SOURCE_CLUSTER_ID, DESTINATION_CLUSTER_ID and TUNNEL_KEY_EXCHANGE on both VMs "
            "(p-256 if one is in FIPS mode), and restart what runs with the old ones; if they are the same, `appliance "
            "source` does not run behind this port",
        )


NO_PATTERN = skipped("SOURCE_BROKER_PATTERN is empty: the brokers that are named are all")


def _random_label() -> str:
    return f"nobody-{token_hex(4)}"


async def examine_here(settings: TunnelSettings, resolve: Resolve) -> Finding:
    """Ask this VM's resolver for made-up names; for the source VM."""
    if not settings.allowed.patterns:
        return NO_PATTERN
    if settings.broker_networks:
        return passed(f"bounded by TUNNEL_BROKER_NETWORKS={','.join(map(str, settings.broker_networks))}")
    names = await resolved_names(settings.allowed, resolve, _random_label(), [settings.server.host])
    if names:
        return warning("; ".join(map(str, names)), remedy(names[0].pattern))
    return passed("no name that was made up has an address")


async def examine_through(settings: TunnelSettings, remote_dial: RemoteDial) -> Finding:
    """Let the source VM dial made-up names; for the destination VM. A name that it may not dial counts as unknown."""
    if not settings.allowed.patterns:
        return NO_PATTERN
    made_up = labels(_random_label(), [settings.server.host])
    for pattern in settings.allowed.patterns:
        for target in (Target(f"{label}.{pattern.domain}", pattern.port) for label in made_up):
            if target not in settings.allowed.exact and await _is_dialled(target, remote_dial):
                return warning(f"{target} was made up just now, and the source VM dials it", remedy(pattern))
    return passed("no name that was made up is dialled by the source VM")


async def _is_dialled(target: Target, remote_dial: RemoteDial) -> bool:
    try:
        await remote_dial(target)
    except (NameUnresolved, TargetRefused):
        return False
    except Unreachable:
        return True
    return True
