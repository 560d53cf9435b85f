"""The groups of a failback: what they have committed in the copies is committed in the source topics, translated.

It is the sync of the groups the other way, by the same rules, but for one: a commit that a consumer made itself in the
source topic is from before the promotion, so it is overwritten; but never backwards, and only while the group has no
member there. Afterwards the commits in the copies are made the link's own again: by them the sync goes on.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from appliance.errors import ApplianceError
from appliance.failover.group_sync import GroupSync
from appliance.failover.last_sync import settled
from appliance.failover.operation import Operation
from appliance.kafka.protocol.metadata import NOWHERE, Partition, is_another
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.translation import Translation, not_known


async def return_groups(operation: Operation, topics: Collection[str]) -> tuple[str, ...] | None:
    """Have the groups follow to these source topics; those that are not where they are at the copies.

    None when nobody tells.
    """
    settings, naming = operation.settings, operation.naming
    if not settings.groups.wanted:
        return ()
    back = _Back({naming.destination(topic): topic for topic in topics})
    maps = _Reversed(OffsetMaps(operation.destination, naming))
    sync = GroupSync(operation.destination, operation.source, back, settings.groups, maps, takes_over=True)
    if not await settled(sync):
        return None
    await sync.make_ours()
    return tuple(plan.name for plan in sync.plans.values() if plan.lag != 0)


@dataclass(frozen=True, slots=True)
class _Back:
    """The names the other way; ``sources`` are the topics by their copies."""

    sources: Mapping[str, str]

    def copies(self, topic: str, internal: bool) -> bool:
        """True for a copy of one of the topics."""
        return not internal and topic in self.sources

    def destination(self, topic: str) -> str:
        """The source topic of a copy."""
        return self.sources[topic]


@dataclass(slots=True)
class _Reversed:
    """Offsets of the copies as those of their sources."""

    maps: OffsetMaps
    copies: Mapping[Partition, Partition] = field(default_factory=dict)

    async def refresh(self, wanted: Collection[Partition] | None = None) -> Mapping[str, ApplianceError]:
        """Learn what was copied since the last time."""
        await self.maps.refresh(())
        self.copies = self.maps.copies()
        sources = {source for copy, source in self.copies.items() if wanted is None or copy in wanted}
        return await self.maps.refresh(sources)

    def translate(self, partition: Partition, offset: int, source_id: UUID = NOWHERE) -> Translation:
        """The source offset of the first copied record at or after an offset of the copy with this id."""
        source = self.copies.get(partition)
        position = self.maps.position(source) if source else None
        if position is not None and is_another(source_id, position.destination_id):
            return not_known(f"topic {partition[0]} was made anew")
        return self.maps.reverse(partition, offset)
