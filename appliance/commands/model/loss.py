"""The loss of a promotion, by partition: the known records of the source that its copy lacks, or has lost.

Counted in offsets, including transaction markers and compacted records. A missing answer is unknown, never 0.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.agreement import CopyLog, SourceLog, agree
from appliance.link.model.checkpoint import StartOffsets, start_place
from appliance.link.model.position import LOST, UNKNOWN, Position
from appliance.listing import number

NO_STARTS: Mapping[str, StartOffsets] = {}
"""The starts of a link that begins at the first records."""


@dataclass(frozen=True, slots=True)
class BothLogs:
    """The source's topics by id, and the known starts of their partitions' logs, with these; none if it is silent.

    ``unfit`` are topics that cannot be copied now, with the reason. ``copies`` are the copies' logs, also by source.
    """

    ids: Mapping[str, UUID] = field(default_factory=dict)
    starts: Mapping[Partition, int] = field(default_factory=dict)
    sources: Mapping[Partition, SourceLog] = field(default_factory=dict)
    unfit: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[Partition, CopyLog] = field(default_factory=dict)
    answers: bool = True


@dataclass(frozen=True, slots=True)
class PartitionLoss:
    """One source partition: the first uncopied offset, the source's end, and the offsets between them.

    ``fault`` is the reason that it is no longer copied, that its progress is unknown, or that a log is not whole.
    ``lost_at_source`` counts the copied offsets that the source holds no more: those behind begin as far before the
    position. ``by_ends`` says that no leader epoch was known, and ``unknown`` why nobody knows what the copy holds.
    """

    topic: str
    partition: int
    position: int | None
    source_end: int | None
    behind: int | None
    fault: str = ""
    lost_at_source: int | None = None
    by_ends: bool = False
    unknown: str = ""

    def __str__(self) -> str:
        """Describe it in one line."""
        position, end, behind = map(number, (self.position, self.source_end, self.behind))
        fault = f" ({self.fault or self.unknown})" if self.fault or self.unknown else ""
        name = f"{self.topic}-{self.partition}"
        return f"{name}: copied up to offset {position}, the source ends at {end}: {behind} behind{fault}"


def losses(
    positions: Mapping[Partition, Position],
    logs: BothLogs,
    takes: Callable[[str], bool],
    starts: Mapping[str, StartOffsets] = NO_STARTS,
) -> list[PartitionLoss]:
    """The loss of each partition of the chosen topics, by positions from before the logs were looked at.

    Records before ``starts`` are not part of the link.
    """
    copied = {key: position for key, position in positions.items() if key in logs.copies}  # others have come since
    partitions = sorted({*copied, *logs.sources})
    chosen = [key for key in partitions if takes(key[0]) and not _is_gone(key, copied.get(key), logs)]
    return [_loss(key, copied.get(key), logs, starts) for key in chosen]


def _is_gone(key: Partition, position: Position | None, logs: BothLogs) -> bool:
    """True of a partition that its recreated topic lacks, once the operator has moved its position to that topic."""
    there = (key[0], 0) in logs.sources and key not in logs.sources
    return there and position is not None and (logs.ids.get(key[0]), 0) == (position.source_id, position.next_offset)


def total(losses_of_partitions: Iterable[PartitionLoss]) -> int | None:
    """The lag of all partitions, in offsets; None if one is unknown."""
    counts = [each.behind for each in losses_of_partitions]
    return None if None in counts else sum(filter(None, counts))


def _loss(
    key: Partition, position: Position | None, logs: BothLogs, starts: Mapping[str, StartOffsets]
) -> PartitionLoss:
    source, fault = logs.sources.get(key), logs.unfit.get(key[0], "")
    end = source.end if source else None
    if position is None:
        chosen = start_place(*key, logs.ids.get(key[0]), starts)
        start = chosen.offset if chosen else logs.starts.get(key)
        behind = None if end is None or start is None or end < start else end - start
        return PartitionLoss(*key, None, end, behind, fault)
    fault = fault or position.stopped
    if position.next_offset == UNKNOWN:
        return PartitionLoss(*key, None, end, None, fault or "nobody knows how far it is copied")
    if logs.answers and key[0] not in logs.ids:
        fault = fault or f"the source has no topic {key[0]} that is to be copied"
    agreement = agree(key[0], position, source, logs.copies[key])
    reason = "; ".join(
        filter(None, (agreement.unrelated, fault, "" if position.has_stopped_for(LOST) else agreement.lost))
    )
    loss = PartitionLoss(*key, position.next_offset, end, agreement.uncopied, reason)
    return replace(loss, lost_at_source=agreement.lost_at_source, by_ends=agreement.by_ends, unknown=agreement.unknown)
