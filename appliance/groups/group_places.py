"""The places of groups in copies, as each link's sync remembers them at the destination (invariant O).

The topic ``<replicator>.groups.offsets`` is compacted, with one partition. Its records are checkpoints as MirrorMaker
2's: the group's source offset, and its place in the copy, -1 if it is no longer synced. The metadata are the sync's own
commits, the next one and the one before it: they are remembered before the commit, so after a kill either is there, and
also of a group that is no longer synced: another link may have to set the commit back.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from appliance.clock import now_ms
from appliance.groups.mirror_formats import MirrorTopics
from appliance.groups.model.group_plan import Places
from appliance.kafka.client.compacted_log import CompactedLog
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.handle import Link
from appliance.link.model.mirror_records import MirrorCheckpoint, decode_checkpoint, encode_checkpoint
from appliance.link.model.naming_policies import OwnCopies


class _Log:
    """The places of one link, read from its topic."""

    def __init__(self, destination: Cluster, topic: str) -> None:
        self.places: dict[tuple[str, Partition], MirrorCheckpoint] = {}
        self._topic = topic
        self._log = CompactedLog(destination, Partition(topic, 0), self._take, self.places.clear)

    async def refresh(self) -> None:
        """Read the newest places."""
        rights = "grant DESTINATION_API_KEY Create, Describe, Read and Write on it"
        await self._log.refresh(f"read {self._topic}: {rights}")

    def _take(self, records: Iterable[Record]) -> None:
        for place in map(decode_checkpoint, records):
            self.places[place.group, place.copy] = place


@dataclass(slots=True)
class GroupPlaces:
    """The places of a link, and of those that share copies with it, as of the last ``refresh``."""

    link: Link
    _logs: dict[str, _Log] = field(default_factory=dict)

    def of(self, group: str, copy: Partition) -> Places:
        """The places of a group in a partition of a copy, by link, and withdrawn ones."""
        return {link: log.places[group, copy] for link, log in self._logs.items() if (group, copy) in log.places}

    @property
    def own(self) -> Collection[tuple[str, Partition]]:
        """The groups and partitions of copies of which this link remembers a place."""
        return [key for key, each in self._own_log.places.items() if each.downstream >= 0]

    @property
    def _own_log(self) -> _Log:
        return self._logs[self.link.naming.replicator]

    async def withdraw(self, gone: Iterable[tuple[str, Partition]]) -> None:
        """Remember of these only the sync's own commits."""
        places = self._own_log.places
        await self.remember([replace(places[key], upstream=-1, downstream=-1) for key in gone])

    async def refresh(self) -> None:
        """Read the newest places."""
        naming, registry, destination = self.link.naming, self.link.registry, self.link.destination
        links = {naming.replicator}
        if naming.sharing.others_write:
            await registry.refresh()
            links |= registry.ledger.sharing
        topics = {name: naming.of_link(name).groups_topic for name in links}
        self._logs = {name: self._logs.get(name) or _Log(destination, topic) for name, topic in topics.items()}
        for log in self._logs.values():
            await log.refresh()

    async def remember(self, places: Iterable[MirrorCheckpoint]) -> None:
        """Write places of this link."""
        topic, now = self.link.naming.groups_topic, now_ms()
        if records := [encode_checkpoint(each, now) for each in places]:
            await MirrorTopics(self.link, (topic,)).append(topic, records)


async def withdraw_places(link: Link, copies: Collection[str] | None = None) -> None:
    """Withdraw the places of a link in these copies, or in all, which it writes no more."""
    places = GroupPlaces(replace(link, naming=replace(link.naming, sharing=OwnCopies())))
    await places.refresh()
    await places.withdraw([key for key in places.own if copies is None or key[1][0] in copies])
