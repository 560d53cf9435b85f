"""The topics of an order: they are looked for in all clusters, and their logs made in the own one."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, raise_first
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.configs import configs
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.topics import NewTopic, grow_topics, require_led
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.naming import Naming
from appliance.link.model.order import Members
from appliance.link.model.replicas import Replica
from appliance.link.model.topic_configs import global_topic, kept_topic
from appliance.order.names import hidden_topic, topic_of


@dataclass(frozen=True, slots=True)
class Order:
    """An order of the topics of the clusters as they are ``listed``, whose first home is ``home``.

    With ``single`` all partitions of a topic have one order. ``lanes`` are as many in each cluster. With ``alone`` the
    home of two clusters goes on when the other one is silent.
    """

    listed: tuple[str, ...]
    home: str
    naming: Naming
    lanes: int
    single: bool = False
    alone: bool = True
    records_gaps: bool = False
    replication_factor: int = -1
    commit_bytes: int = 2**24
    commit_interval: float = 0.025
    transaction_timeout: float = 60.0
    discovery_seconds: float = 3.0

    @property
    def clusters(self) -> Members:
        """Their ids, sorted."""
        return tuple(sorted(self.listed))


class PartitionLogs(NamedTuple):
    """The logs read for a partition of T: its ``origins``, and each cluster's ``hidden`` log, if there is one."""

    origins: tuple[Replica, ...]
    hidden: Mapping[str, Replica]


async def make_topics(cluster: Cluster, topics: list[NewTopic]) -> None:
    """Make the topics that are not there, each with the settings that the cluster accepts."""
    raise_first((await ConfigFilter(cluster).make(topics)).failures.values())


@dataclass(eq=False)
class OrderTopics:
    """The topics of an order, as they were seen last in each of the ``clusters``; ``own`` is the one that is written.

    A cluster that does not answer keeps what is known of it. ``problems`` are those of the ways to each.
    """

    order: Order
    own: str
    clusters: Mapping[str, Cluster]
    problems: Mapping[str, ProblemLog]
    _known: dict[str, Metadata] = field(init=False, default_factory=dict)

    @property
    def sees_own(self) -> bool:
        """True once the own cluster has answered."""
        return self.own in self._known

    async def search(self) -> Mapping[Partition, PartitionLogs]:
        """Look at all clusters, and make and grow the own logs; the partitions of T whose logs are there."""
        await asyncio.gather(*(self._look(name) for name in self.clusters))
        sizes = self._sizes()
        await self._make_logs(sizes)
        own = self._known[self.own].topics if self.sees_own else {}
        ready: dict[Partition, PartitionLogs] = {}
        for topic, size in sizes.items():
            least = min(len(own[name].leaders) if name in own else 0 for name in self._logs(topic))
            for number in range(min(size, least)):
                key = Partition(topic, number)
                ready[key] = PartitionLogs(self._origins(key), self._hidden_logs(key))
        return ready

    def _logs(self, topic: str) -> tuple[str, str]:
        return self.order.naming.destination(topic), hidden_topic(topic)

    async def _look(self, name: str) -> None:
        try:
            self._known[name] = await self.clusters[name].metadata(None)
            self.problems[name].over("topics")
        except ApplianceError as error:
            self.problems[name].tell("topics", error)

    def _sizes(self) -> dict[str, int]:
        """The topics of the order, each with the number of partitions of its logs.

        One that no cluster shows now, because it is out of reach or was deleted, has its logs here all the same: they
        are checked before this cluster votes.
        """
        sizes: dict[str, int] = {}
        own = self._known[self.own].topics if self.sees_own else {}
        for log in own.values():
            known = topic_of(log.name)
            if self.order.naming.copies(known, internal=False) and own.keys() >= {*self._logs(known)}:
                sizes[known] = len(log.leaders)
        for metadata in self._known.values():
            for topic in self.order.naming.copied(metadata.topics):
                size = 1 if self.order.single else len(topic.leaders)
                sizes[topic.name] = max(size, sizes.get(topic.name, 0))
        return {name: size for name, size in sizes.items() if size}

    async def _make_logs(self, sizes: Mapping[str, int]) -> None:
        """Make and grow T-global and the hidden log of each topic."""
        known = self._known[self.own].topics if self.sees_own else {}
        wanted = {log: size for topic, size in sizes.items() for log in self._logs(topic)}
        missing = [topic for topic in sizes if not known.keys() >= {*self._logs(topic)}]
        smaller = {log: size for log, size in wanted.items() if log in known and len(known[log].leaders) < size}
        if missing:
            settings = await configs(self.cluster, [topic for topic in missing if topic in known])
            factor, new = self.order.replication_factor, list[NewTopic]()
            for topic in missing:
                shown, hidden = self._logs(topic)
                new.append(global_topic(shown, sizes[topic], factor, settings.get(topic, {})))
                new.append(kept_topic(hidden, sizes[topic], factor))
            await make_topics(self.cluster, [each for each in new if each.name not in known])
        if smaller:
            raise_first((await grow_topics(self.cluster, smaller)).values())
        if missing or smaller:
            await retry_while_busy(lambda: require_led(self.cluster, wanted))
            self._known[self.own] = await self.cluster.metadata(None)

    @property
    def cluster(self) -> Cluster:
        """The own cluster."""
        return self.clusters[self.own]

    def _origins(self, key: Partition) -> tuple[Replica, ...]:
        """The origins of a partition of T, in all clusters that were seen."""
        return tuple(
            Replica(key.topic, number, self.order.naming.destination(key.topic), topic.id, topic.id, name)
            for name, metadata in self._known.items()
            if (topic := metadata.topics.get(key.topic)) is not None
            for number in range(len(topic.leaders))
            if self.order.single or number == key.number
        )

    def _hidden_logs(self, key: Partition) -> Mapping[str, Replica]:
        """The hidden log of each cluster that has one."""
        name = hidden_topic(key.topic)
        return {
            cluster: Replica(name, key.number, "", topic.id, topic.id, cluster)
            for cluster, metadata in self._known.items()
            if (topic := metadata.topics.get(name)) is not None
        }
