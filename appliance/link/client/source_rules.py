"""Source topics that a link of shared copies, exact or identical names must not copy, as the source knows them."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from appliance.errors import ApplianceError
from appliance.kafka.client.configs import POLICY, try_describe
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Topic
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.client.registry import Registry
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.claims import would_travel_in_circles
from appliance.link.model.naming import Naming

_COMPACT = "compact"
_CIRCLE = "its records would travel in circles"


@dataclass(slots=True)
class SourceRules:
    """The rules of one link; with ``one_writer`` each key of a compacted topic is written in one cluster only."""

    source: Cluster
    destination: Cluster
    naming: Naming
    one_writer: bool
    _registry: Registry = field(init=False)
    _first_lanes: dict[uuid.UUID, LaneCheckpoint] = field(default_factory=dict)
    """The first lane of each link into the source that has copies there, by the id of its positions topic."""

    def __post_init__(self) -> None:
        self._registry = Registry(self.source, self.naming.replicator, api_key="SOURCE_API_KEY")

    async def unfit(self, topics: Mapping[str, Topic]) -> dict[str, str]:
        """The reasons not to copy, by topic of the cluster."""
        copied = self.naming.copied(topics)
        compacted = await self._compacted(copied) if self.naming.sharing.others_write and not self.one_writer else {}
        return compacted | await self.circles(copied)

    async def circles(self, topics: Iterable[Topic]) -> dict[str, str]:
        """The same, of the topics whose records would travel in circles; other names show where a copy came from."""
        if self.naming.policy.shows_origin:
            return {}
        await self._registry.refresh()
        holders = {topic.name: self._registry.ledger.holding((topic.name, topic.id)) for topic in topics}
        links = {claim.link for claims in holders.values() for claim in claims}
        back = {} if self.naming.sharing.tells_origins else {link: await self._why_back(link) for link in links}
        faults = {name: would_travel_in_circles(name, claims, self.naming, back) for name, claims in holders.items()}
        return {name: reason for name, reason in faults.items() if reason}

    async def _why_back(self, link: str) -> str:
        """The reason not to copy what a link into the source has copied there, whatever it is called; empty if none.

        Its record, in its positions at the source, has the id of the cluster from which it copies.
        """
        if link == self.naming.opposite:
            return _CIRCLE
        positions = self.naming.of_link(link).positions_topic
        try:
            topic = (await self.source.metadata([positions])).topics.get(positions)
            if topic is None:
                return ""
            check(topic.error, f"tell where {link} copies from: grant SOURCE_API_KEY Describe and Read on {positions}")
            checkpoint = self._first_lanes.setdefault(topic.id, LaneCheckpoint())
            await peek_checkpoint(self.source, positions, 0, checkpoint)
            destination = (await self.destination.metadata([positions])).cluster_id
        except ApplianceError as error:
            return str(error)
        record = checkpoint.link
        return _CIRCLE if record and destination and record.source_cluster == destination else ""

    async def _compacted(self, topics: Iterable[Topic]) -> dict[str, str]:
        """Of one key that several clusters write, each of them and a shared copy would keep another record for ever."""
        names = [topic.name for topic in topics]
        described, failures = await try_describe(self.source, names, (POLICY,))
        faults = {}
        for name in names:
            policy = described.get(name, {}).get(POLICY)
            if name in failures:
                faults[name] = str(failures[name])
            elif policy and _COMPACT in (policy.value or ""):
                faults[name] = (
                    f"{name} is compacted and others write to its copy: clusters that write one key would differ for "
                    "ever; REPLICA_ONE_WRITER_PER_KEY=yes says that each key is written in one cluster only"
                )
        return faults
