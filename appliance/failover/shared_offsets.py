"""The translation of offsets where copies have the names of their sources, and links write on both sides.

A group that has read a topic at the source up to an offset has read records of several origins: the source's own, the
destination's, and those of further clusters. At the destination they lie in another order. It continues there at the
lowest place of a record that it has not read, whatever its origin: it skips none, and may read some again.

- The source's own records are found by the link's map.
- The destination's own ones are found by the map of the link from the destination to the source, backwards.
- Those of a further cluster are found by the map of its link to the source, backwards, and of that to the destination.

What it has not read and what is not there yet will lie past the copy's last stable offset, which is read before the
maps. Maps may be older than the group's offset: they then lead to a lower place, never to a higher one.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from appliance.errors import ApplianceError
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.naming import Naming
from appliance.link.model.position import Position
from appliance.link.model.translation import Translation, TranslationState, not_known


class SharedOffsets:
    """Translates the offsets of topics with identical names, as of the last ``refresh``."""

    def __init__(self, source: Cluster, destination: Cluster, naming: Naming) -> None:
        self._own = OffsetMaps(destination, naming)
        self._to_source = _MapsInto(source, naming)
        self._to_destination = _MapsInto(destination, naming)
        self._destination = destination
        self._stable_ends: Mapping[Partition, int] = {}

    async def refresh(self, wanted: Collection[Partition] | None = None) -> Mapping[str, ApplianceError]:
        """Read the newest maps on both sides; the failures of unreadable ones, each with a name for it.

        Raises:
            ApplianceError: the destination does not answer.
        """
        here = await self._destination.metadata(sorted({topic for topic, _ in wanted or ()}))
        self._stable_ends, _ = await try_offsets(self._destination, here, wanted or (), Bound.STABLE_END)
        failures = {**await self._own.refresh(wanted), **await self._to_destination.refresh(wanted)}
        try:
            failures |= await self._to_source.refresh(wanted)
        except ApplianceError as error:
            failures["the offset maps at the source"] = error
        return failures

    def translate(self, partition: Partition, offset: int, source_id: UUID = NOWHERE) -> Translation:
        """The lowest place at the destination of a record that a group with this offset has not read."""
        if self._to_source.cluster_id is None:
            return not_known("the offset maps at the source were not read yet")
        own = self._translated(self._own, partition, offset, source_id)
        if own.offset is None:
            return own
        lowest = own.offset
        for link in self._to_source.links.values():
            place = self._of(link, partition, offset, source_id)
            if place.offset is None:
                return place
            lowest = min(lowest, place.offset)
        return replace(own, offset=lowest)

    def _of(self, link: OffsetMaps, partition: Partition, offset: int, source_id: UUID) -> Translation:
        """The place of the first record at or after an offset of the source that this link has copied there."""
        here = _reversed(link, partition, offset, source_id)
        if here is None:
            return self._end(partition, 0)
        if here.offset is None or link.source_cluster == self._to_destination.cluster_id:
            return here
        if not link.source_cluster:
            return not_known("a link to the source does not say which cluster it copies from")
        held = self._own.position(partition)
        there = self._to_destination.of(link.source_cluster, partition, held.destination_id if held else NOWHERE)
        return self._translated(there, partition, here.offset, NOWHERE) if there else self._end(partition, 0)

    def _translated(self, maps: OffsetMaps, partition: Partition, offset: int, source_id: UUID) -> Translation:
        """The copy's offset of the first copied record at or after a source offset; the copy's end if there is none."""
        held = maps.position(partition)
        found = self._end(partition, 0) if _has_none(maps, partition) else maps.translate(partition, offset, source_id)
        if found.state is TranslationState.AHEAD:
            return replace(found, offset=self._end(partition, _copied_to(held)).offset)
        at_end = found.offset is not None and found.offset == _copied_to(held)
        return self._end(partition, found.offset or 0) if at_end else found

    def _end(self, partition: Partition, least: int) -> Translation:
        """The place of what is not there yet."""
        if partition not in self._stable_ends:
            return not_known("the end of the copy is not known")
        return Translation(max(least, self._stable_ends[partition]), TranslationState.EXACT)


@dataclass(slots=True)
class _MapsInto:
    """The maps of all links to a cluster, by their positions topics; ``cluster_id`` is None before the first read."""

    cluster: Cluster
    naming: Naming
    cluster_id: str | None = None
    links: dict[str, OffsetMaps] = field(default_factory=dict)

    async def refresh(self, wanted: Collection[Partition] | None) -> dict[str, ApplianceError]:
        """Read the newest maps; the failures of unreadable ones.

        Raises:
            ApplianceError: the cluster does not answer.
        """
        metadata = await self.cluster.metadata(None)
        names = set(filter(self.naming.is_positions, metadata.topics))
        self.links = {
            name: self.links.get(name) or OffsetMaps(self.cluster, self.naming.of_link(name)) for name in names
        }
        failures: dict[str, ApplianceError] = {}
        for name, maps in self.links.items():
            failures |= {f"{what} in {name}": error for what, error in (await maps.refresh(wanted)).items()}
        self.cluster_id = metadata.cluster_id
        return failures

    def of(self, source_cluster: str, partition: Partition, copy_id: UUID) -> OffsetMaps | None:
        """The maps of the link from a cluster with this id that copies a partition to the topic with that id."""
        for maps in self.links.values():
            held = maps.position(partition) if maps.source_cluster == source_cluster else None
            if held is not None and copy_id in (NOWHERE, held.destination_id):
                return maps
        return None


def _reversed(maps: OffsetMaps, partition: Partition, offset: int, copy_id: UUID) -> Translation | None:
    """The source offset of the first record copied at or after an offset of the copy with this id, or of the first
    uncopied one; None if the link does not copy to that topic.
    """
    held = maps.position(partition)
    if held is not None and copy_id not in (NOWHERE, held.destination_id):
        return None
    if _has_none(maps, partition):
        return None if held is None else Translation(held.next_offset, TranslationState.EXACT)
    found = maps.reverse(partition, offset)
    return maps.reverse(partition, offset - found.behind) if found.state is TranslationState.AHEAD else found


def _has_none(maps: OffsetMaps, partition: Partition) -> bool:
    """True when all is read, and a link has copied no record of a partition."""
    held = maps.position(partition)
    return not maps.failure(partition) and (held is None or held.records == 0)


def _copied_to(held: Position | None) -> int:
    """The end of what a link has copied."""
    if held is None or held.copy_end is None:
        return 0
    return held.tail.copy_to if held.tail else held.copy_end.offset
