"""The destination VM: the tunnel, the source's brokers through it, the destination's brokers, and the rights to write.

The source's brokers are found and dialled as the replicator does it: by the DNS shim and the endpoints of the running
``appliance destination``. With SOURCE_ROUTE=direct there is neither.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from appliance.dns.stub import StubResolver, system_addresses
from appliance.doctor.brokers import BrokerChecks, BrokerPath, RemoteDial, check_authorities, names_remedies
from appliance.doctor.clock import NTP, examine_clock
from appliance.doctor.destination_rights import Destination
from appliance.doctor.optional_rights import AclRights, FailbackRights, GroupRights
from appliance.doctor.source_topics import SourceTopics
from appliance.doctor.step import SETTINGS, Finding, Step, failed, passed, skipped, together
from appliance.doctor.tunnel import TunnelChecks, examine_through
from appliance.errors import ApplianceError, BrokerNotAllowed, NameUnresolved, TargetRefused, Unreachable
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.dial import accept_all
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.model.naming import Naming
from appliance.settings.target import Target
from appliance.settings.values import Route, Settings, Side, TopicNaming
from appliance.sql.model.statement import Statement
from appliance.tls.identity import Identity
from appliance.tunnel.model.allowlist import check_endpoint
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.probe import TlsProbe

_GATEWAY = "`appliance destination` on this VM"
_BEYOND = "; run `appliance doctor source` on the source VM"


class DestinationVm:
    """The context of the destination VM's steps."""

    def __init__(self, settings: Settings, settings_file: Path, timeouts: Timeouts) -> None:
        self.link = settings.tunnel.link + (f" through {settings.tunnel.ssh.login}" if settings.tunnel.ssh else "")
        self.settings = settings
        self._settings_file = settings_file
        self.by_ssh = settings.route is Route.TUNNEL and settings.tunnel.ssh is not None
        client_id = f"{settings.replicator}-doctor"
        source, destination = source_cluster(settings), destination_cluster(settings)
        check_authorities(settings.source, settings.destination)
        tunnel, end = settings.tunnel, Side.DESTINATION
        vms = tunnel.of_each_vm if settings.route is Route.TUNNEL else ()
        self.tunnels = [TunnelChecks(each, TlsProbe(each, Identity.of(each, end), timeouts), end) for each in vms]
        self._probes = [each.probe for each in self.tunnels]
        to_source = _through_the_tunnel(settings, self._remote_dial) if vms else _at_home(source)
        self.source = BrokerChecks(source, to_source, client_id)
        self.destination = BrokerChecks(destination, _at_home(destination), client_id)
        self.topics = SourceTopics(source, Naming.of(settings))
        self.copies = Destination(settings, destination, self.topics)
        self.acls = AclRights(source, destination, Naming.of(settings))
        self.groups = GroupRights(source, destination, settings)
        self.failback = FailbackRights(source, self.topics, self.groups, Naming.of(settings))

    async def close(self) -> None:
        """Close all connections."""
        await self.source.close()
        await self.destination.close()
        for probe in self._probes:
            await probe.close()

    async def sql(self) -> Finding:
        """Check the link's SQL as the replicator does when it starts."""
        from appliance.spark.session import local_spark
        from appliance.sql.plan import check

        statement, engine = Statement.of(self.settings.transform), replace(self.settings.engine, tasks=1)
        assert statement
        async with local_spark(engine, f"{self.settings.replicator}-doctor", self._settings_file.absolute()) as spark:
            session = await asyncio.to_thread(spark.sql_session)
            await asyncio.to_thread(check, session, statement, bool(self.settings.transform.salt))
        return passed(f"{statement.name}: accepted")

    async def other_cluster(self) -> Finding:
        """Check that the two clusters are not one, as which their names and addresses may not show."""
        try:
            ids = [(await side.cluster.metadata([])).cluster_id for side in (self.source, self.destination)]
        except ApplianceError as error:
            return skipped(f"not known: {error}")
        if ids[0] and ids[0] == ids[1] and self.settings.topics.naming is not TopicNaming.EXACT:
            return failed(f"the source and the destination are one cluster, {ids[0]}", _TWO)
        return passed(f"{ids[0]} and {ids[1]}")

    async def clock(self) -> Finding:
        """Check this VM's clock."""
        return examine_clock(self._settings_file)

    async def each(self, check: Callable[[TunnelChecks], Awaitable[Finding]]) -> Finding:
        """Run a check for each source VM; one that fails it beside another is not tried any more."""
        if len(self.tunnels) == 1:
            return await check(self.tunnels[0])
        findings = [(each, await _found(check(each))) for each in self.tunnels]
        self.tunnels = [each for each, found in findings if not found.verdict.blocks] or self.tunnels
        return together({each.settings.way: found for each, found in findings})

    async def made_up_names(self) -> Finding:
        """Let the source VM dial made-up names below the pattern."""
        return await self.each(lambda each: examine_through(self.settings.tunnel, each.remote_dial))

    async def _remote_dial(self, target: Target) -> None:
        for each in self.tunnels:
            await each.remote_dial(target)


async def _found(check: Awaitable[Finding]) -> Finding:
    """The check of one of several source VMs; an error is its finding."""
    try:
        return await check
    except ApplianceError as error:
        return failed(str(error), "see the text of the error")


def _at_home(cluster: KafkaCluster) -> BrokerPath:
    settings = cluster.settings
    down = f"check {settings.variable('BROKER_SERVERS')}, that the broker is up, and the firewalls between"
    return BrokerPath(
        system_addresses, accept_all, names_remedies(settings, "the system's resolver"), [(Unreachable, down)]
    )


def _through_the_tunnel(settings: Settings, remote_dial: RemoteDial) -> BrokerPath:
    tunnel, shim = settings.tunnel, settings.dns.listen
    return BrokerPath(
        resolve=StubResolver(shim).addresses,
        accept=partial(check_endpoint, settings=tunnel),
        names=(
            (BrokerNotAllowed, "allow it on both VMs: SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN"),
            (NameUnresolved, f"what runs at DNS_LISTEN={shim} has other settings: restart {_GATEWAY} with these"),
            (Unreachable, f"nobody answers at DNS_LISTEN={shim}: start {_GATEWAY}"),
        ),
        near=((Unreachable, f"the endpoint is not open: see what {_GATEWAY} logs"),),
        remote_dial=remote_dial,
        beyond=(
            (
                TargetRefused,
                f"allow it there: SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN, TUNNEL_BROKER_NETWORKS{_BEYOND}",
            ),
            (
                Unreachable,
                f"the source VM does not reach it: is the broker up, and its firewall open to the source VM?{_BEYOND}",
            ),
        ),
    )


def _each(check: Callable[[TunnelChecks], Awaitable[Finding]]) -> Callable[[DestinationVm], Awaitable[Finding]]:
    return lambda vm: vm.each(check)


_TWO = "check SOURCE_BROKER_SERVERS and DESTINATION_BROKER_SERVERS"
_KEY = "check DESTINATION_API_KEY and DESTINATION_API_SECRET"
_TUNNEL = attrgetter("tunnels")
_SSH = attrgetter("by_ssh")
_ACLS = attrgetter("settings.topics.follows_acls")
_GROUPS = attrgetter("settings.groups.wanted")
_SQL = attrgetter("settings.transform.wanted")
_ANSWER = "see what the brokers log, and which permission the API key lacks"

STEPS: tuple[Step[DestinationVm], ...] = (
    Step("clock", SETTINGS, DestinationVm.clock, NTP),
    Step("SSH server", SETTINGS, _each(TunnelChecks.login), "check TUNNEL_SSH", _SSH),
    Step("SSH forward", "SSH server", _each(TunnelChecks.forward), "see what the SSH server logs", _SSH),
    Step(
        "tunnel port", "SSH forward", _each(TunnelChecks.port), "check SOURCE_SIDE_TUNNEL_IP and TUNNEL_PORT", _TUNNEL
    ),
    Step(
        "mutual TLS",
        "tunnel port",
        _each(TunnelChecks.identity),
        "see what `appliance source` logs on the source VM",
        _TUNNEL,
    ),
    Step("source: DNS", "mutual TLS", lambda vm: vm.source.names(), "check SOURCE_BROKER_SERVERS"),
    Step("source: made-up names", "mutual TLS", DestinationVm.made_up_names, "check SOURCE_BROKER_PATTERN", _TUNNEL),
    Step("source: TCP", "source: DNS", lambda vm: vm.source.tcp(), "check SOURCE_BROKER_SERVERS"),
    Step("source: TLS", "source: TCP", lambda vm: vm.source.tls(), "check SOURCE_CA_FILE"),
    Step("source: SASL", "source: TLS", lambda vm: vm.source.sasl(), "check SOURCE_API_KEY and SOURCE_API_SECRET"),
    Step("source: API versions", "source: SASL", lambda vm: vm.source.versions(), _ANSWER),
    Step("source: broker ids", "source: API versions", lambda vm: vm.source.ids(), _ANSWER),
    Step("source: read access", "source: broker ids", lambda vm: vm.topics.examine(), _ANSWER),
    Step("source: groups", "source: broker ids", lambda vm: vm.groups.read(), _ANSWER, _GROUPS),
    Step("source: ACLs", "source: broker ids", lambda vm: vm.acls.read(), _ANSWER, _ACLS),
    Step("source: failback", "source: read access", lambda vm: vm.failback.examine(), _ANSWER),
    Step("destination: DNS", SETTINGS, lambda vm: vm.destination.names(), "check DESTINATION_BROKER_SERVERS"),
    Step("destination: TCP", "destination: DNS", lambda vm: vm.destination.tcp(), "check DESTINATION_BROKER_SERVERS"),
    Step("destination: TLS", "destination: TCP", lambda vm: vm.destination.tls(), "check DESTINATION_CA_FILE"),
    Step("destination: SASL", "destination: TLS", lambda vm: vm.destination.sasl(), _KEY),
    Step("destination: API versions", "destination: SASL", lambda vm: vm.destination.versions(), _ANSWER),
    Step("destination: broker ids", "destination: API versions", lambda vm: vm.destination.ids(), _ANSWER),
    Step("two clusters", "source: broker ids", DestinationVm.other_cluster, _TWO),
    Step("destination: create", "destination: broker ids", lambda vm: vm.copies.create(), _ANSWER),
    Step("destination: write", "destination: broker ids", lambda vm: vm.copies.write(), _ANSWER),
    Step("destination: read and alter", "destination: broker ids", lambda vm: vm.copies.others(), _ANSWER),
    Step("destination: transactions", "destination: create", lambda vm: vm.copies.transactions(), _ANSWER),
    Step("destination: positions topic", "destination: broker ids", lambda vm: vm.copies.positions(), _ANSWER),
    Step("destination: groups", "destination: broker ids", lambda vm: vm.groups.write(), _ANSWER, _GROUPS),
    Step("destination: standby", "destination: broker ids", lambda vm: vm.groups.standby(), _ANSWER),
    Step("destination: ACLs", "destination: broker ids", lambda vm: vm.acls.write(), _ANSWER, _ACLS),
    Step("SQL", SETTINGS, DestinationVm.sql, "see what Java printed, and docs/run/transform.md", _SQL),
)
