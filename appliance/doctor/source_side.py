"""The source VM: the tunnel's server on it, and every source broker as that server reaches it.

The tunnel is tried from here as the destination VM would try it, which the shared secret allows; with an identity in
files only the destination VM can. The VM needs no API key: without one, the checks that need a login are skipped.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from appliance.doctor.brokers import BrokerChecks, BrokerPath, check_authorities, names_remedies
from appliance.doctor.clock import NTP, examine_clock
from appliance.doctor.source_topics import SourceTopics
from appliance.doctor.step import SETTINGS, Finding, Step, passed, skipped
from appliance.doctor.tunnel import TunnelChecks, examine_here
from appliance.errors import TargetRefused, Unreachable
from appliance.gateway.command import broker_resolver
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.model.naming import Naming
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, Settings, Side
from appliance.tls.identity import Identity
from appliance.tunnel.model.allowlist import check_target, dialable
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.probe import TlsProbe
from appliance.tunnel.stream.tcp_channel import TcpChannel, dial


class SourceVm:
    """The context of the source VM's steps."""

    def __init__(self, settings: Settings, settings_file: Path, timeouts: Timeouts) -> None:
        self._settings = settings
        self.link = settings.tunnel.link
        self._settings_file = settings_file
        self._timeouts = timeouts
        self._server = _from_here(settings.tunnel.listen)
        as_destination = replace(settings.tunnel, server=self._server, ssh=None)
        identity = None if settings.tunnel.files else Identity.of(as_destination, Side.DESTINATION)
        self._probe = TlsProbe(as_destination, identity, timeouts) if identity else None
        self._trial = TunnelChecks(as_destination, self._probe, Side.SOURCE) if self._probe else None
        source = _with_certificate_here(settings.source)
        check_authorities(source)
        client_id = f"{settings.replicator}-doctor"
        path = _beside(settings)
        cluster = KafkaCluster(source, path.resolve, client_id, accept=path.accept)
        self.source = BrokerChecks(cluster, path, client_id, relays_only=True)
        self._naming = Naming.of(settings)
        self._topics = SourceTopics(cluster, self._naming)

    async def close(self) -> None:
        """Close all connections."""
        await self.source.close()
        if self._probe:
            await self._probe.close()

    async def clock(self) -> Finding:
        """Check this VM's clock."""
        return examine_clock(self._settings_file)

    async def port(self) -> Finding:
        """Check that the tunnel server listens at its port of this VM."""
        if self._trial:
            return await self._trial.port()
        channel = await dial((self._server.host,), self._server.port, self._timeouts.dial, TcpChannel)
        channel.reset()
        return passed(f"something listens at {self._server}")

    async def identity(self) -> Finding:
        """Check that the server accepts an end that knows the secret."""
        if self._trial:
            return await self._trial.identity()
        return skipped("the other end's key is on the destination VM: run `appliance doctor destination` there")

    async def made_up_names(self) -> Finding:
        """Resolve made-up names below the pattern."""
        return await examine_here(self._settings.tunnel, broker_resolver(self._settings.tunnel))

    async def read_access(self) -> Finding:
        """Check the topics, where this VM can list them."""
        if not self.source.logs_in or not self._naming.included.pattern:
            setting = self._naming.policy.chosen_by
            return skipped(f"a login or {setting} is not set on this VM, which needs neither")
        return await self._topics.examine()


def _with_certificate_here(cluster: ClusterSettings) -> ClusterSettings:
    """The cluster without our certificate if its file is on the other VM only."""
    own = cluster.certificate
    return cluster if own is None or own.file.exists() else replace(cluster, certificate=None)


def _from_here(listen: Target) -> Target:
    """The address at which a server that listens there is reached on the VM itself."""
    address = ipaddress.ip_address(listen.host)
    if not address.is_unspecified:
        return listen
    return Target("127.0.0.1" if address.version == 4 else "::1", listen.port)


def _beside(settings: Settings) -> BrokerPath:
    tunnel = settings.tunnel
    resolver = f"TUNNEL_RESOLVER={tunnel.resolver}" if tunnel.resolver else "this VM's resolver"

    def accept(target: Target, addresses: Sequence[str]) -> None:
        check_target(target, tunnel)
        dialable(target, addresses, tunnel)

    down = "check SOURCE_BROKER_SERVERS, that the broker is up, and that its firewall lets this VM in"
    return BrokerPath(
        resolve=broker_resolver(tunnel),
        accept=accept,
        names=(
            (TargetRefused, "allow it: SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN, TUNNEL_BROKER_NETWORKS"),
            *names_remedies(settings.source, resolver),
        ),
        near=((Unreachable, down),),
    )


_LISTENING = "start `appliance source` on this VM"
_ANSWER = "see what the brokers log, and which permission the API key lacks"

STEPS: tuple[Step[SourceVm], ...] = (
    Step("clock", SETTINGS, SourceVm.clock, NTP),
    Step("tunnel port", SETTINGS, SourceVm.port, _LISTENING),
    Step("mutual TLS", "tunnel port", SourceVm.identity, "see what `appliance source` logs"),
    Step("source: DNS", SETTINGS, lambda vm: vm.source.names(), "check TUNNEL_RESOLVER"),
    Step("source: made-up names", "source: DNS", SourceVm.made_up_names, "check SOURCE_BROKER_PATTERN"),
    Step("source: TCP", "source: DNS", lambda vm: vm.source.tcp(), "check SOURCE_BROKER_SERVERS"),
    Step("source: TLS", "source: TCP", lambda vm: vm.source.tls(), "check SOURCE_CA_FILE"),
    Step("source: SASL", "source: TLS", lambda vm: vm.source.sasl(), "check SOURCE_API_KEY and SOURCE_API_SECRET"),
    Step("source: API versions", "source: SASL", lambda vm: vm.source.versions(), _ANSWER),
    Step("source: broker ids", "source: API versions", lambda vm: vm.source.ids(), _ANSWER),
    Step("source: read access", "source: broker ids", SourceVm.read_access, _ANSWER),
)
