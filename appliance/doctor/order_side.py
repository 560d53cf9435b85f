"""The VM beside one cluster of a total order: the way to each other cluster, the own one, and what all must share.

No clock decides anything in an order. Only the certificates of the tunnels need them, and ``mutual TLS`` measures that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from appliance.doctor.brokers import BrokerChecks
from appliance.doctor.destination_side import DestinationVm
from appliance.doctor.source_topics import unreadable, whom
from appliance.doctor.step import SETTINGS, Finding, Step, failed, passed, warning
from appliance.doctor.tunnel import TunnelChecks
from appliance.errors import ApplianceError
from appliance.kafka.client.acls import AclOperation, permitted_operations
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.configs import LEAST_IN_SYNC, POLICY, Settings, try_describe
from appliance.kafka.client.topics import create_topics
from appliance.kafka.protocol.metadata import Metadata
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.topic_configs import beats_topic, offsets_topic, positions_topic
from appliance.listing import some
from appliance.order.names import BEATS_LOG, hidden_topic, order_naming
from appliance.settings.order_values import OrderSettings
from appliance.settings.role import prefix_of
from appliance.tunnel.model.connect import Timeouts

_UNCLEAN = "unclean.leader.election.enable"
_COMPACT = "compact"
_NEEDED = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE_CONFIGS)
_WORDS = {
    "SOURCE_SIDE_TUNNEL_IP": "the address in GLOBAL_CLUSTERS",
    "SOURCE_CLUSTER_ID, DESTINATION_CLUSTER_ID": "GLOBAL_CLUSTERS",
    "the source VM": "that VM",
}
"""Words of a link's remedies, and those of an order."""


class OrderVm:
    """The context of the steps; ``ways`` lead to the other clusters, and ``own`` are the brokers beside this VM."""

    def __init__(self, settings: OrderSettings, settings_file: Path, timeouts: Timeouts) -> None:
        self.settings, self.naming = settings, order_naming(settings.topics_regex)
        self.link = f"{', '.join(each.id for each in settings.clusters)}, beside {settings.cluster}"
        self.ways = {
            each.id: DestinationVm(settings.link(each.id), settings_file, timeouts)
            for each in settings.clusters
            if each.id != settings.cluster
        }
        self.own: BrokerChecks = next(iter(self.ways.values())).destination

    async def close(self) -> None:
        """Close all connections."""
        await asyncio.gather(*(way.close() for way in self.ways.values()))

    @property
    def clusters(self) -> Mapping[str, KafkaCluster]:
        """All clusters by their ids."""
        others = {name: way.source.cluster for name, way in self.ways.items()}
        return {self.settings.cluster: self.own.cluster, **others}

    async def readable(self, name: str) -> Finding:
        """Check that T and the order's topics in a cluster may be read."""
        cluster = self.clusters[name]
        metadata, key = await cluster.metadata(None), whom(cluster)
        topics = self._topics(metadata)
        names = [*topics, *self._logs(topics), *self._own_topics]
        if refused := await unreadable(cluster, names):
            return failed(f"{len(refused):,} of {len(names):,} refused: {some(refused)}", f"permit {key} READ on them")
        if not topics:
            detail = f"of {len(metadata.topics):,} topics that {key} may see, none matches"
            return warning(detail, "check GLOBAL_TOPICS_REGEX, make the topic, or permit DESCRIBE and READ on it")
        described, _ = await try_describe(cluster, topics, (POLICY,))
        compacted = [
            topic for topic, keys in described.items() if POLICY in keys and _COMPACT in (keys[POLICY].value or "")
        ]
        remark = f"; compacted, so only what is left when the home reads it is ordered: {some(compacted)}"
        return passed(f"{len(topics):,} topics: {some(topics)}{remark if compacted else ''}")

    async def writable(self) -> Finding:
        """Check that the order's topics in the own cluster can be made or written, and its transactional ids used."""
        cluster, naming, key = self.own.cluster, self.naming, whom(self.own.cluster)
        metadata, factor = await cluster.metadata(None), self.settings.topics.replication_factor
        topics = self._topics(metadata)
        lanes = self.settings.engine.lanes or 1
        new = (
            positions_topic(naming, lanes, factor),
            offsets_topic(naming, lanes, factor),
            beats_topic(BEATS_LOG.topic, factor),
        )
        missing = [topic for topic in new if topic.name not in metadata.topics]
        refusals = (await create_topics(cluster, missing, validate_only=True)).failures if missing else {}
        for error in refusals.values():
            return failed(str(error), f"permit {key} CREATE on the cluster, or check REPLICATION_FACTOR={factor}")
        await retry_while_busy(lambda: cluster.coordinator(naming.transactional_id(0)))
        there = [name for name in (*self._logs(topics), *self._own_topics) if name in metadata.topics]
        rights = await permitted_operations(cluster, there) if there else {}
        lacks = {each: [name for name, own in rights.items() if each not in own] for each in _NEEDED}
        if refused := "; ".join(f"{each.name} on {some(names)}" for each, names in lacks.items() if names):
            return failed(f"refused: {refused}", f"permit {key} {refused}")
        return passed(f"{len(there):,} topics are there and may be written, {len(missing):,} can be made")

    async def safe(self, name: str) -> Finding:
        """Check that a cluster loses nothing that the order has written, and keeps every T-global whole."""
        cluster = self.clusters[name]
        metadata = await cluster.metadata(None)
        topics = self._topics(metadata)
        names = [each for each in (*self._logs(topics), *self._own_topics) if each in metadata.topics]
        described, _ = await try_describe(cluster, names, (POLICY, LEAST_IN_SYNC, _UNCLEAN))
        values = {topic: {key: each.value or "" for key, each in keys.items()} for topic, keys in described.items()}
        shown = {self.naming.destination(topic) for topic in topics}
        if compacted := [topic for topic in shown & values.keys() if _COMPACT in values[topic].get(POLICY, "")]:
            return failed(
                f"compacted: {some(compacted)}", f"set {POLICY}=delete: compaction takes records out of the order"
            )
        unclean = [topic for topic, keys in values.items() if keys.get(_UNCLEAN) == "true"]
        few = [topic for topic, keys in values.items() if int(keys.get(LEAST_IN_SYNC) or 1) < 2]
        if unclean or few:
            faults = {f"{_UNCLEAN}=true": unclean, f"{LEAST_IN_SYNC} below 2": few}
            detail = "; ".join(f"{fault}: {some(names)}" for fault, names in faults.items() if names)
            return warning(detail, f"a lost promise can break the order: set {_UNCLEAN}=false and {LEAST_IN_SYNC}=2")
        return passed(
            f"{len(names):,} topics lose nothing by an election" if names else "no topic of the order is there yet"
        )

    async def lanes(self) -> Finding:
        """Check that the order has as many lanes in each cluster that answers."""
        counts, silent = {}, []
        for name, cluster in self.clusters.items():
            try:
                topic = (await cluster.metadata([self.naming.positions_topic])).topics.get(self.naming.positions_topic)
                counts[name] = len(topic.leaders) if topic else 0
            except ApplianceError:
                silent.append(name)
        detail = ", ".join(f"{name}: {count or 'not begun'}" for name, count in counts.items())
        wanted = {count for count in (self.settings.engine.lanes, *counts.values()) if count}
        if len(wanted) > 1:
            return failed(f"{detail}; LANES={self.settings.engine.lanes}", "set the same LANES on all VMs: it is fixed")
        if silent:
            asked = f"{detail}; " if detail else ""
            return warning(f"{asked}unknown, as they do not answer: {some(silent)}", "see the steps of these clusters")
        return passed(detail)

    def _topics(self, metadata: Metadata) -> list[str]:
        return sorted(topic.name for topic in self.naming.copied(metadata.topics))

    def _logs(self, topics: Sequence[str]) -> list[str]:
        return [name for topic in topics for name in (self.naming.destination(topic), hidden_topic(topic))]

    @property
    def _own_topics(self) -> tuple[str, ...]:
        return self.naming.positions_topic, self.naming.offsets_topic, BEATS_LOG.topic


_BROKERS: Mapping[str, Callable[[BrokerChecks], Awaitable[Finding]]] = {
    "DNS": BrokerChecks.names,
    "TCP": BrokerChecks.tcp,
    "TLS": BrokerChecks.tls,
    "SASL": BrokerChecks.sasl,
    "API versions": BrokerChecks.versions,
    "broker ids": BrokerChecks.ids,
}
_REMEDIES = {"TLS": "{}_CA_FILE", "SASL": "{0}_API_KEY and {0}_API_SECRET"}
_ANSWER = "see what the brokers log, and which permission the API key lacks"


def steps(settings: OrderSettings) -> tuple[Step[OrderVm], ...]:
    """The steps on this VM: each other cluster, the own one, and all of them together."""
    return (*_steps(settings), Step("lanes", SETTINGS, OrderVm.lanes, _ANSWER))


def _steps(settings: OrderSettings) -> Iterator[Step[OrderVm]]:
    names = [each.id for each in settings.clusters if each.id != settings.cluster]
    for name in (*names, settings.cluster):
        is_own, after = name == settings.cluster, SETTINGS
        if not is_own:
            tunnel, check_port = partial(_by_tunnel, name), "check GLOBAL_CLUSTERS and TUNNEL_PORT"
            yield Step(f"{name}: tunnel port", after, partial(_port, name), check_port, tunnel)
            port = f"{name}: tunnel port"
            yield Step(f"{name}: mutual TLS", port, partial(_identity, name), "see that VM's log", tunnel)
            after = f"{name}: mutual TLS"
        for what, check in _BROKERS.items():
            remedy = f"check {_REMEDIES.get(what, '{}_BROKER_SERVERS').format(prefix_of(name))}"
            yield Step(f"{name}: {what}", after, partial(_checked, name, check), remedy)
            after = f"{name}: {what}"
        yield Step(f"{name}: read access", after, partial(_readable, name), _ANSWER)
        if is_own:
            yield Step(f"{name}: write access", after, OrderVm.writable, _ANSWER)
        yield Step(f"{name}: topics' safety", after, partial(_safe, name), _ANSWER)


def _by_tunnel(name: str, vm: OrderVm) -> bool:
    return bool(vm.ways[name].tunnels)


async def _port(name: str, vm: OrderVm) -> Finding:
    return _in_words(await vm.ways[name].each(TunnelChecks.port))


async def _identity(name: str, vm: OrderVm) -> Finding:
    return _in_words(await vm.ways[name].each(TunnelChecks.identity))


async def _checked(name: str, check: Callable[[BrokerChecks], Awaitable[Finding]], vm: OrderVm) -> Finding:
    return _in_words(await check(vm.ways[name].source if name in vm.ways else vm.own))


async def _readable(name: str, vm: OrderVm) -> Finding:
    return await vm.readable(name)


async def _safe(name: str, vm: OrderVm) -> Finding:
    return await vm.safe(name)


def _value(settings: Settings, key: str) -> str:
    setting = settings.get(key)
    return (setting and setting.value) or ""


def _in_words(finding: Finding) -> Finding:
    detail, remedy = finding.detail, finding.remedy
    for words, ours in _WORDS.items():
        detail, remedy = detail.replace(words, ours), remedy.replace(words, ours)
    return Finding(finding.verdict, detail, remedy)
