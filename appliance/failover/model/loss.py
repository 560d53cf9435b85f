"""The loss of a promotion, by partition: the known records of the source that its copy lacks.

Counted in offsets, including transaction markers and compacted records. A missing answer is unknown, never 0.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.link.model.checkpoint import StartOffsets, start_place
from appliance.link.model.position import UNKNOWN, Position

NO_STARTS: Mapping[str, StartOffsets] = {}
"""The starts of a link that begins at the first records."""


@dataclass(frozen=True, slots=True)
class SourceLogs:
    """The source's topics by id, and the known starts and ends of their partitions' logs.

    ``unfit`` are topics that cannot be copied now, with the reason.
    """

    ids: Mapping[str, UUID] = field(default_factory=dict)
    starts: Mapping[Partition, int] = field(default_factory=dict)
    ends: Mapping[Partition, int] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()
    unfit: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionLoss:
    """One source partition: the first uncopied offset, the source's end, and the offsets between them.

    ``fault`` is the reason that it is no longer copied, or that its progress is unknown.
    """

    topic: str
    partition: int
    position: int | None
    source_end: int | None
    behind: int | None
    fault: str = ""

    def __str__(self) -> str:
        """Describe it in one line."""
        position, end, behind = map(number, (self.position, self.source_end, self.behind))
        fault = f" ({self.fault})" if self.fault else ""
        name = f"{self.topic}-{self.partition}"
        return f"{name}: copied up to offset {position}, the source ends at {end}: {behind} behind{fault}"


def number(count: int | None) -> str:
    """A count for people."""
    return "unknown" if count is None else str(count)


def losses(
    positions: Mapping[Partition, Position],
    source: SourceLogs | None,
    takes: Callable[[str], bool],
    starts: Mapping[str, StartOffsets] = NO_STARTS,
) -> list[PartitionLoss]:
    """The loss of each partition of the chosen topics; ``source`` is None while it does not answer.

    Records before ``starts`` are not part of the link.
    """
    known = {*positions, *(source.partitions if source else ())}
    return [_loss(key, positions.get(key), source, starts) for key in sorted(known) if takes(key[0])]


def total(found: Iterable[PartitionLoss]) -> int | None:
    """The lag of all partitions, in offsets; None if one is unknown."""
    counts = [each.behind for each in found]
    return None if None in counts else sum(count for count in counts if count is not None)


def _loss(
    key: Partition, held: Position | None, source: SourceLogs | None, starts: Mapping[str, StartOffsets]
) -> PartitionLoss:
    end = source.ends.get(key) if source else None
    fault = source.unfit.get(key[0], "") if source else ""
    if held is None:
        chosen = start_place(*key, source.ids.get(key[0]) if source else None, starts)
        start = chosen.offset if chosen else source.starts.get(key) if source else None
        behind = None if end is None or start is None or end < start else end - start
        return PartitionLoss(*key, None, end, behind, fault)
    fault = fault or held.stopped
    if held.next_offset == UNKNOWN:
        return PartitionLoss(*key, None, end, None, fault or "nobody knows how far it is copied")
    if source and key[0] not in source.ids:
        gone = f"the source has no topic {key[0]} that is to be copied"
        return PartitionLoss(*key, held.next_offset, None, None, fault or gone)
    if source and is_another(held.source_id, source.ids[key[0]]):
        return PartitionLoss(*key, held.next_offset, None, None, f"source topic {key[0]} was deleted and made anew")
    if end is not None and end < held.next_offset:
        return PartitionLoss(*key, held.next_offset, end, None, "the source has lost records that were copied")
    return PartitionLoss(*key, held.next_offset, end, None if end is None else end - held.next_offset, fault)
