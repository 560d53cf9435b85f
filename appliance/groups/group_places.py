"""The places of groups in copies, as each link's sync remembers them at the destination (invariant O).

The topic ``<replicator>.groups.offsets`` is compacted, with one partition. Its records are checkpoints as MirrorMaker
2's: the group's source offset, and its place in the copy, -1 if it is no longer synced. The metadata are the sync's own
commits, the next one and the one before it: they are remembered before the commit, so after a kill either is there, and
also of a group that is no longer synced: another link may have to set the commit back.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from uuid import UUID

from appliance.clock import now_ms
from appliance.groups.mirror_formats import MirrorTopics
from appliance.groups.model.group_plan import Places
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.checkpoint_log import read_records
from appliance.link.client.registry import Registry
from appliance.link.model.mirror_records import MirrorCheckpoint, decode_checkpoint, encode_checkpoint
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import OwnCopies


@dataclass(slots=True)
class _Log:
    """The places of one link, up to an offset of the topic with this id."""

    topic_id: UUID | None = None
    read_to: int = -1
    places: dict[tuple[str, Partition], MirrorCheckpoint] = field(default_factory=dict)


@dataclass(slots=True)
class GroupPlaces:
    """The places of a link, and of those that share copies with it, as of the last ``refresh``."""

    destination: Cluster
    naming: Naming
    replication_factor: int = -1
    _logs: dict[str, _Log] = field(default_factory=dict)
    _registry: Registry | None = None

    def of(self, group: str, copy: Partition) -> Places:
        """The places of a group in a partition of a copy, by link, and withdrawn ones."""
        return {link: log.places[group, copy] for link, log in self._logs.items() if (group, copy) in log.places}

    @property
    def own(self) -> Collection[tuple[str, Partition]]:
        """The groups and partitions of copies of which this link remembers a place."""
        return [key for key, each in self._logs[self.naming.replicator].places.items() if each.downstream >= 0]

    async def withdraw(self, gone: Iterable[tuple[str, Partition]]) -> None:
        """Remember of these only the sync's own commits.

        Raises:
            ApplianceError: some are not written.
        """
        held = self._logs[self.naming.replicator].places
        await self.remember([replace(held[key], upstream=-1, downstream=-1) for key in gone])

    async def refresh(self) -> None:
        """Read the newest places.

        Raises:
            ApplianceError: some are unknown.
        """
        registry = self._registry = self._registry or Registry(self.destination, self.naming.replicator)
        if self.naming.sharing.others_write:
            await registry.refresh()
        links = {self.naming.replicator} | registry.sharing
        self._logs = {link: self._logs.get(link) or _Log() for link in links}
        for link, log in self._logs.items():
            await self._read(log, self.naming.of_link(link).groups_topic)

    async def remember(self, places: Iterable[MirrorCheckpoint]) -> None:
        """Write places of this link.

        Raises:
            ApplianceError: some are not written.
        """
        topic, now = self.naming.groups_topic, now_ms()
        if records := [encode_checkpoint(each, now) for each in places]:
            await MirrorTopics(self.destination, (topic,), self.replication_factor).append(topic, records)

    async def _read(self, log: _Log, topic: str) -> None:
        metadata, partition = await self.destination.metadata([topic]), Partition(topic, 0)
        known = metadata.topics.get(topic)
        if known is None or known.id != log.topic_id:
            log.topic_id, log.read_to, log.places = known.id if known else None, -1, {}
        if known is None:
            return
        check(known.error, f"read {topic}: grant DESTINATION_API_KEY Create, Describe, Read and Write on it")
        end = (await list_offsets(self.destination, metadata, [partition], Bound.STABLE_END))[partition]
        if log.read_to > end:
            log.read_to, log.places = -1, {}
        while log.read_to < end:
            records, following = await read_records(self.destination, metadata, partition, log.read_to)
            for place in map(decode_checkpoint, records):
                log.places[place.group, place.copy] = place
            log.read_to = following  # not earlier: a refused record is met again


async def withdraw_places(destination: Cluster, naming: Naming, copies: Collection[str] | None = None) -> None:
    """Withdraw the places of a link in these copies, or in all, which it writes no more.

    Raises:
        ApplianceError: some are not written.
    """
    places = GroupPlaces(destination, replace(naming, sharing=OwnCopies()))
    await places.refresh()
    await places.withdraw([key for key in places.own if copies is None or key[1][0] in copies])
