"""The translation of offsets where several links write a copy.

With names of their own (a fan-in), a link knows its source's records alone. The places that the other links have found
for the group count as well (``group_places``).

With identical names, links write on both sides. A group that has read a topic at the source up to an offset has read
records of several origins: the source's own, the destination's, and those of further clusters. At the destination they
lie in another order. It continues there at the lowest place of a record that it has not read, whatever its origin: it
skips none, and may read some again.

- The source's own records are found by the link's map.
- The destination's own ones are found by the map of the link from the destination to the source, backwards.
- Those of a further cluster are found by the map of its link to the source, backwards, and of that to the destination.

What it has not read and what is not there yet will lie past the destination's last stable offset. That is read first,
and then the positions at the destination as far as they had been written by then, with all transactions decided. The
maps at the source may be older than the group's offset: they then lead to a lower place, never to a higher one.

Nothing is guessed: where a link that writes there has no position of the topic, has stopped, or cannot be read, or
where topics were made anew, the place is not known. A cluster without a link to the source has no part in a group.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from appliance.errors import ApplianceError
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.protocol.metadata import NOWHERE, Partition, is_another
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.client.registry import Registry
from appliance.link.handle import Link
from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.naming import Naming
from appliance.link.model.position import UNKNOWN, Position
from appliance.link.model.translation import Translation, TranslationState, not_known


class SharedOffsets:
    """Translates the offsets of topics with shared copies, as of the last ``refresh``."""

    def __init__(self, link: Link) -> None:
        self._naming, self._reads_both = link.naming, link.naming.sharing.tells_origins
        self._destination = link.destination
        at_source = Registry(link.source, link.naming.replicator, api_key="SOURCE_API_KEY")
        self._at_source = _Links(link.source, link.naming, at_source, settled=False)
        self._at_destination = _Links(link.destination, link.naming, link.registry, settled=True)
        self._ends: Mapping[Partition, int] = {}
        self._ids: Mapping[str, UUID] = {}

    async def refresh(self, wanted: Collection[Partition] | None = None) -> Mapping[str, ApplianceError]:
        """Read the newest maps on both sides; the failures of unreadable ones, each with a name for it."""
        asked = list(wanted or ())
        copies = [self._copy(each) for each in asked]
        here = await self._destination.metadata(sorted({topic for topic, _ in copies}))
        self._ids = {topic.name: topic.id for topic in here.topics.values()}
        self._ends, _ = await try_offsets(self._destination, here, copies, Bound.STABLE_END)
        failures = await self._at_destination.refresh(asked)
        try:
            if self._reads_both:
                failures |= await self._at_source.refresh(asked)
        except ApplianceError as error:
            failures["the offset maps at the source"] = error
        return failures

    def translate(self, partition: Partition, offset: int, source_id: UUID = NOWHERE, start: int = 0) -> Translation:
        """The lowest place at the destination of a record that a group with this offset has not read."""
        copy = self._copy(partition)
        copy_id = self._ids.get(copy[0], NOWHERE)
        own = self._at_destination.links.get(self._naming.replicator)
        has_read = not self._reads_both or self._at_source.cluster_id is not None
        if own is None or not has_read or copy not in self._ends or copy_id == NOWHERE:
            return not_known("the maps of the links on both sides are not known yet")
        if fault := _fault(own, partition, source_id, copy_id, stops=self._reads_both):
            return not_known(fault)
        place = self._place(own, partition, offset, start)
        for link in self._at_source.of_identical_names(partition[0]):
            if place.offset is None:
                return place
            other = self._of(link, partition, offset, start, source_id, copy_id)
            if other is not None:
                place = other if other.offset is None else replace(place, offset=min(place.offset, other.offset))
        return place.within(start)

    def _of(
        self, link: OffsetMaps, partition: Partition, offset: int, start: int, source_id: UUID, copy_id: UUID
    ) -> Translation | None:
        """The place of the first record at or after an offset of the source that this link has copied there.

        None if the records of its origin do not come to the destination.
        """
        home = link.source_cluster == self._at_destination.cluster_id
        if fault := _fault(link, partition, copy_id if home else NOWHERE, source_id):
            return not_known(fault)
        here = _reversed(link, partition, offset)
        position = link.position(partition)
        if home or here.offset is None or position is None:
            return here
        places: list[Translation] = []
        for there in self._at_destination.of_identical_names(partition[0]):
            if there.source_cluster == link.source_cluster:
                fault = _fault(there, partition, position.source_id, copy_id)
                places.append(not_known(fault) if fault else self._place(there, partition, here.offset, start))
        return min(places, key=lambda each: -1 if each.offset is None else each.offset, default=None)

    def _place(self, maps: OffsetMaps, partition: Partition, offset: int, start: int) -> Translation:
        """The copy's offset of the first copied record at or after a source offset; its end if there is none yet."""
        position, end = maps.position(partition), self._ends[self._copy(partition)]
        assert position is not None  # it has no fault
        if position.records == 0:
            behind = max(0, offset - position.next_offset)
            return Translation(end, TranslationState.AHEAD if behind else TranslationState.EXACT, behind)
        place = maps.translate(partition, offset, start=start)
        copied_to = position.tail.copy_to if position.tail else end
        return replace(place, offset=max(copied_to, end)) if place.offset == copied_to else place

    def _copy(self, partition: Partition) -> Partition:
        return Partition(self._naming.destination(partition.topic), partition.number)


@dataclass(slots=True)
class _Links:
    """The maps of all links to a cluster that share copies there, by the registry; ``cluster_id`` is None before it was
    read. With ``settled`` they hold all that was written when their reading began.
    """

    cluster: Cluster
    naming: Naming
    registry: Registry
    settled: bool
    cluster_id: str | None = None
    links: Mapping[str, OffsetMaps] = field(default_factory=dict)
    writing: Mapping[str, "_Writing"] = field(default_factory=dict)

    async def refresh(self, wanted: Collection[Partition]) -> dict[str, ApplianceError]:
        """Read the newest maps; the failures of unreadable ones. If the cluster does not answer, all is as before."""
        await self.registry.refresh()
        here = await self.cluster.metadata(sorted({topic for topic, _ in wanted}))
        names = self.registry.ledger.sharing if self.naming.sharing.tells_origins else {self.naming.replicator}
        links = {
            name: self.links.get(name) or OffsetMaps(self.cluster, self.naming.of_link(name), settled=self.settled)
            for name in names
        }
        failures: dict[str, ApplianceError] = {}
        for name, maps in links.items():
            read = await maps.refresh(wanted)
            failures |= {f"{what} of {name}": error for what, error in read.items()}
        self.cluster_id, self.links = here.cluster_id, links
        ids = {topic.name: topic.id for topic in here.topics.values()}
        self.writing = {name: _writing(maps, self.registry, ids) for name, maps in links.items()}
        return failures

    def of_identical_names(self, topic: str) -> Iterable[OffsetMaps]:
        """The maps of the links that may write to a topic the records of topics with its name."""
        return [maps for name, maps in self.links.items() if self.writing[name].may_take(topic)]


class _Writing(NamedTuple):
    """The topics that a link writes, or has written: its ``copies``, and with identical names all that ``begins`` may
    take.
    """

    copies: frozenset[str]
    begins: Collection[LinkTopics]

    def may_take(self, topic: str) -> bool:
        """True if the link writes to a topic, has written there, or may begin to."""
        return topic in self.copies or any(topics.may_take(topic) for topics in self.begins)


def _writing(maps: OffsetMaps, registry: Registry, ids: Mapping[str, UUID]) -> _Writing:
    """The topics that a link writes, by the registry.

    It may have identical names unless it claims copies with other names. A copy that it has given up counts until a
    topic of its name has another of these ids.
    """
    claims, topics_by_claims = registry.ledger.claims_of(maps.name), registry.ledger.topics_of(maps.name)
    copies = {copy for copy, _ in claims}
    given_up = registry.ledger.former_copies(maps.name)
    copies |= {copy for copy, copy_id in given_up if not is_another(copy_id, ids.get(copy, NOWHERE))}
    names = {copy_id: copy for copy, copy_id in claims if copy_id != NOWHERE}
    pairs = {(topic, names.get(position.destination_id)) for (topic, _), position in maps.positions()}
    same = any(topic == copy for topic, copy in pairs)
    renamed = any(copy not in (None, topic) for topic, copy in pairs)
    return _Writing(frozenset(copies), topics_by_claims if same or not renamed else ())


def _fault(maps: OffsetMaps, partition: Partition, source_id: UUID, copy_id: UUID, *, stops: bool = True) -> str:
    """The reason that a link's map of a partition says nothing of these topics; empty if it does.

    With ``stops`` the map of one that has stopped says nothing of records that it would have to copy back.
    """
    name, position = maps.name, maps.position(partition)
    if failure := maps.failure(partition):
        return str(failure)
    if position is None or position.next_offset == UNKNOWN or not maps.source_cluster:
        return f"{name} has no position of {partition} yet"
    if position.stopped and stops:
        return f"{name} has stopped at {partition}: {position.stopped}"
    if is_another(position.destination_id, copy_id) or is_another(position.source_id, source_id):
        return f"{name} knows another topic {partition[0]}: it was made anew"
    if position.records == 0 and not _is_whole(position):
        return f"{name} has copied nothing of {partition} since its position was set"
    return ""


def _is_whole(position: Position) -> bool:
    """True of a position whose map says that nothing has ever been copied below it."""
    return position.tail is not None and not position.tail.packed and position.tail.copy_from == 0


def _reversed(maps: OffsetMaps, partition: Partition, offset: int) -> Translation:
    """The lowest source offset of a record that is copied at or after an offset of the copy, or is not copied yet."""
    position = maps.position(partition)
    assert position is not None  # it has no fault
    if position.records == 0:
        return Translation(position.next_offset, TranslationState.EXACT)
    place = maps.reverse(partition, offset)
    if place.state is TranslationState.AHEAD:
        return Translation(position.next_offset, TranslationState.EXACT)
    if place.offset is None:
        return place
    later = (each.range.source_from for each in maps.segments(partition) if each.range.copy_from >= offset)
    return replace(place, offset=min(place.offset, position.next_offset, *later))
