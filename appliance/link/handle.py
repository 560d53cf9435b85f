"""An open link: its two clusters, its names, and its facts as they are now. Commands, status and verify take it.

Every reader takes the same facts in the same order, and so judges the same: the topics of both clusters first, then the
states, then the claims. A copy that is shown was claimed, if at all, before the claims were read.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from appliance.errors import LinkRefused
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Metadata, Topic
from appliance.link.client.checkpoint_log import NewestStates, peek_checkpoints
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.client.registry import Registry
from appliance.link.model.claims import Claim, Copy
from appliance.link.model.copy_states import States
from appliance.link.model.link_check import PositionsTopic, link_fault, never_ran
from appliance.link.model.naming import PRODUCERS, Naming
from appliance.link.model.replicas import DiscoveredTopics, discover, obeying
from appliance.settings.values import Settings

Fault = Callable[[PositionsTopic, list[Copy], Naming], str]
"""The reason that a positions topic, with the link's copies in the registry, must not be used; empty when it may."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The topics of both clusters at one moment, and the copies of a link among them.

    ``matched`` are all copies by name, and ``states`` those of the link. ``others`` are the copies that belong to other
    links, by name.
    """

    source: Metadata
    destination: Metadata
    matched: DiscoveredTopics
    states: States
    others: Mapping[str, Claim]

    @property
    def topics(self) -> set[str]:
        """The source topics that have a copy or, for a reason, cannot be copied now."""
        copied = {replica.source_topic for replica in self.matched.replicas}
        return copied | {topic.name for topic, _ in self.matched.smaller} | self.matched.unfit.keys()

    @property
    def active(self) -> DiscoveredTopics:
        """The copies whose states let the link write."""
        return obeying(self.matched, self.states)


def continuing(topic: PositionsTopic, own_copies: list[Copy], naming: Naming) -> str:
    """The fault of a link that must not continue, as far as the destination knows."""
    return link_fault(topic, "", own_copies, naming)


@dataclass(slots=True)
class Link:
    """An open link. ``registry`` are the claims of all links at its destination, ``lanes`` its newest checkpoints."""

    source: KafkaCluster
    destination: KafkaCluster
    naming: Naming
    replication_factor: int = -1
    registry: Registry = field(init=False)
    lanes: NewestStates = field(init=False)

    def __post_init__(self) -> None:
        self.registry = Registry.of(self.destination, self.naming, self.replication_factor)
        self.lanes = NewestStates(self.destination, self.naming)

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["Link"]:
        """The link of these settings; neither cluster is dialled before it is asked."""
        async with source_cluster(settings) as source, destination_cluster(settings) as destination:
            yield cls.of(settings, source, destination)

    @classmethod
    def of(cls, settings: Settings, source: KafkaCluster, destination: KafkaCluster) -> "Link":
        """The link of these settings over clusters that the caller closes."""
        return cls(source, destination, Naming.of(settings), settings.topics.replication_factor)

    def reversed(self, *, keeps_times: bool) -> "Link":
        """The link of a failback, from the copies to their sources, which keep the records' times if that is needed."""
        naming = replace(self.naming.failback, keeps_times=keeps_times)
        return Link(self.destination, self.source, naming, self.replication_factor)

    async def copies(self) -> Copies:
        """The copies as they are now."""
        source, destination = await self.source.metadata(None), await self.destination.metadata(None)
        matched, states = discover(source, destination, self.naming), await self.lanes.read()
        await self.registry.refresh()
        ids = {each.destination_topic: each.destination_id for each in matched.replicas}
        return Copies(source, destination, matched, states, self.registry.ledger.of_others(ids))

    async def positions(self) -> PositionsTopic:
        """The positions topic with the checkpoints of all its partitions, without its policy; none if there is none."""
        name = self.naming.positions_topic
        topic = (await self.destination.metadata([name])).topics.get(name)
        lanes = len(topic.leaders) if topic else 0
        return PositionsTopic(name, "", await peek_checkpoints(self.destination, name, lanes))

    async def checked_positions(self, fault_of: Fault = continuing) -> PositionsTopic:
        """The positions topic of a link that may be used, as far as the destination knows.

        Raises:
            LinkRefused: there is no such link, or it has a fault.
        """
        topic = await self.positions()
        if not topic.checkpoints:
            raise LinkRefused(never_ran(topic.name))
        await self.registry.refresh()
        if fault := fault_of(topic, self.registry.ledger.own(await self.destination.metadata(None)), self.naming):
            raise LinkRefused(fault)
        return topic

    async def source_identity(self) -> tuple[str, Topic | None]:
        """The source cluster's id, and its topic of producers if the link tells origins."""
        source = await self.source.metadata([PRODUCERS] if self.naming.sharing.tells_origins else [])
        return source.cluster_id, source.topics.get(PRODUCERS)

    def maps(self) -> OffsetMaps:
        """The maps of offsets of its copies, not read yet."""
        return OffsetMaps(self.destination, self.naming)
