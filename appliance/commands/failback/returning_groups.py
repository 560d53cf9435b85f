"""The groups of a failback: their commits in the copies are translated and repeated in the source topics.

The groups are synced the other way, by the same rules except one: a consumer's own commit in the source topic dates
from before the promotion, so it is overwritten; but never backwards, and only while the group has no member there.
Afterwards the commits in the copies become the link's own again: the sync continues from them.

A group that has read none of its copy's new records moves to where the logs diverge: the source's uncopied records lie
between, and nobody has read them there.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from appliance.commands.run.last_sync import settled
from appliance.commands.run.operation import Operation
from appliance.errors import ApplianceError
from appliance.groups.group_sync import GroupSync
from appliance.groups.model.group_plan import not_synced
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.protocol.metadata import NOWHERE, Partition, is_another
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.checkpoint import Gap
from appliance.link.model.translation import Translation, not_known


async def return_groups(operation: Operation, topics: Collection[str]) -> Mapping[str, str] | None:
    """Sync the groups to these source topics; the groups that are not synced, with their states.

    None when not all are told.
    """
    settings, naming = operation.settings, operation.naming
    if not settings.groups.wanted:
        return {}
    back = _Back({naming.destination(topic): topic for topic in topics})
    maps = _Reversed(OffsetMaps(operation.destination, naming), await _gaps(operation, set(topics)))
    sync = GroupSync(operation.destination, operation.source, back, settings.groups, maps, takes_over=True)
    if not await settled(sync) or sync.stale:
        return None
    await sync.make_ours()
    return not_synced(sync.plans.values())


@dataclass(frozen=True, slots=True)
class _Back:
    """The names the other way; ``sources`` are the topics by their copies."""

    sources: Mapping[str, str]

    def copies(self, topic: str, internal: bool, _others: Container[str] = ()) -> bool:
        """True for a copy of one of the topics."""
        return not internal and topic in self.sources

    def destination(self, topic: str) -> str:
        """The source topic of a copy."""
        return self.sources[topic]


@dataclass(slots=True)
class _Reversed:
    """Offsets of the copies as those of their sources; ``gaps`` are those of each source, the newest first."""

    maps: OffsetMaps
    gaps: Mapping[Partition, Sequence[Gap]]
    copies: Mapping[Partition, Partition] = field(default_factory=dict)

    async def refresh(self, wanted: Collection[Partition] | None = None) -> Mapping[str, ApplianceError]:
        """Read the newest maps."""
        await self.maps.refresh(())
        self.copies = self.maps.copies()
        sources = {source for copy, source in self.copies.items() if wanted is None or copy in wanted}
        return await self.maps.refresh(sources)

    def translate(self, partition: Partition, offset: int, source_id: UUID = NOWHERE, _: int = 0) -> Translation:
        """The source offset of the first copied record at or after an offset of the copy with this id."""
        source = self.copies.get(partition)
        position = self.maps.position(source) if source else None
        if position is not None and is_another(source_id, position.destination_id):
            return not_known(f"topic {partition[0]} was made anew")
        translation = self.maps.reverse(partition, offset)
        if source is None or translation.offset is None:
            return translation
        return replace(translation, offset=self._gap_start(source, translation.offset))

    def _gap_start(self, source: Partition, offset: int) -> int:
        """The beginning of a gap after which no record was copied before this offset: markers may lie between."""
        position, copied = self.maps.position(source), self.maps.translate(source, offset).offset
        for gap in self.gaps.get(source, ()):
            if position is None or copied is None or gap.next > offset or is_another(gap.source_id, position.source_id):
                continue
            inside, behind = (self.maps.translate(source, at).offset for at in (gap.first, gap.next))
            if behind == copied and inside in (None, copied):  # else some of it was copied after all
                offset = gap.first
        return offset


async def _gaps(operation: Operation, topics: Collection[str]) -> dict[Partition, list[Gap]]:
    """The gaps of these topics, as far as the source still holds them."""
    await operation.lanes.read()
    every = [gap for checkpoint in operation.lanes.checkpoints for gap in checkpoint.gaps.values()]
    gaps = [gap for gap in every if gap.partition[0] in topics]
    metadata = await operation.source.metadata(sorted({gap.partition[0] for gap in gaps}))
    starts, _ = await try_offsets(operation.source, metadata, {gap.partition for gap in gaps}, Bound.START)
    gaps_of: dict[Partition, list[Gap]] = {}
    for gap in sorted(gaps, key=lambda gap: gap.next, reverse=True):
        if gap.partition in starts and (start := starts[gap.partition]) < gap.next:
            gaps_of.setdefault(gap.partition, []).append(replace(gap, first=max(gap.first, start)))
    return gaps_of
