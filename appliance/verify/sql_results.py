"""The results of partitions that SQL has copied: the records on which it fails, and its changes meanwhile.

Each record on which it fails is a dead letter that is still there, or the copy is not whole. What was compared by an
older statement is no result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from appliance.errors import ApplianceError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.link_sql import SqlChange, history
from appliance.link.model.naming import DEAD_LETTERS
from appliance.link.model.position import Position
from appliance.listing import counted
from appliance.logs.model.span import CopyState
from appliance.logs.reader import Choose, LogReader, spans
from appliance.logs.side import Side
from appliance.verify.model.report import NEWEST_RECORDS, PartitionResult

Lanes = Sequence[LaneCheckpoint]


def with_failure(result: PartitionResult, lanes: Lanes) -> PartitionResult:
    """The result, unless its link stands at a record on which its SQL fails, or has skipped one."""
    at, span, position = result.failed_at, result.source, _position(result, lanes)
    if at is None or span is None or not result.state.well:
        return result
    fails = f"the SQL fails on the record at source offset {at}"
    if position is None or position.next_offset < min(at + 1, span.end):
        why = (position and position.stopped) or "the link has not passed it"
        detail = f"{fails}, which is neither copied nor a dead letter: {why}"
        return replace(result, state=CopyState.BEHIND, detail=detail, behind=1)
    for gap in (gap for lane in lanes for gap in lane.gaps.values()):
        is_its = (gap.partition, gap.source_id) == ((result.topic, result.partition), position.source_id)
        if is_its and max(gap.first, span.start) < min(gap.next, span.end):
            detail = f"{fails}; source offsets {gap.first} to {gap.next} were skipped: {gap.cause}"
            return replace(result, state=CopyState.DIFFERS, detail=detail, differs_at=gap.first)
    return result


async def with_letters(
    results: Iterable[PartitionResult], lanes: Lanes, destination: KafkaCluster, choose: Choose | None
) -> list[PartitionResult]:
    """The results, without the good ones of which more dead letters are lost than retention can have taken."""
    checked = []
    for each in results:
        position = _position(each, lanes)
        count = position.dead_letters if position and each.state.well else 0
        checked.append(await _with_letters(each, count, destination, choose) if count else each)
    return checked


async def _with_letters(
    result: PartitionResult, written: int, destination: KafkaCluster, choose: Choose | None
) -> PartitionResult:
    try:
        missing = written - await _letters(destination, choose, result)
    except ApplianceError as error:
        detail = f"its {counted(written, 'dead letter')} cannot be read: {error}"
        return replace(result, state=CopyState.NOT_COMPARED, detail=detail)
    detail = f"the destination lacks {counted(missing, 'dead letter')} of {written}"
    return replace(result, state=CopyState.DIFFERS, detail=detail) if missing > 0 else result


async def _letters(destination: KafkaCluster, choose: Choose | None, result: PartitionResult) -> int:
    """Number of dead letters of a partition that are there, or that retention can have taken."""
    partition = Partition(result.copy + DEAD_LETTERS, result.partition or 0)
    metadata = await destination.metadata([partition.topic])
    if partition.topic not in metadata.topics:
        return 0
    span = (await spans(destination, metadata, [partition]))[partition]
    side = Side(LogReader(destination, partition, "verify-dead-letters", span.start, choose), span)
    return span.start + await side.count_between(span.start, span.end)


def _position(result: PartitionResult, lanes: Lanes) -> Position | None:
    key = Partition(result.topic, result.partition or 0)
    return next((lane.positions[key] for lane in lanes if key in lane.positions), None)


_DOUBTFUL = frozenset({CopyState.BEHIND, CopyState.DIFFERS})
_CHANGED = "the link's SQL was changed while this was compared: run this again"


def sql_changes(checkpoints: Iterable[LaneCheckpoint]) -> list[SqlChange]:
    """All changes of the link's SQL."""
    return [change for checkpoint in checkpoints for change in checkpoint.sql.values()]


def is_doubtful(result: PartitionResult) -> bool:
    """True for a result that a change of the SQL may explain: equal copies are equal."""
    return result.state in _DOUBTFUL


def without_doubtful(
    results: Iterable[PartitionResult], before: Sequence[SqlChange], after: Sequence[SqlChange]
) -> list[PartitionResult]:
    """The results, without those that end where records were made by SQL of which the verification did not know."""
    return [_not_compared(each) if _is_in_doubt(each, before, after) else each for each in results]


def _is_in_doubt(result: PartitionResult, before: Sequence[SqlChange], after: Sequence[SqlChange]) -> bool:
    if result.partition is None or not is_doubtful(result):
        return False
    changed = changed_from(before, after, Partition(result.topic, result.partition))
    if result.compared == NEWEST_RECORDS:  # what changed may be a key's newest record, compared by an older one
        return changed is not None
    compared_to = result.source.end if result.source and result.state is CopyState.BEHIND else result.differs_at
    return changed is not None and (compared_to is None or compared_to >= changed)


def _not_compared(result: PartitionResult) -> PartitionResult:
    return replace(result, state=CopyState.NOT_COMPARED, detail=_CHANGED, differs_at=None, behind=0)


def changed_from(before: Sequence[SqlChange], after: Sequence[SqlChange], partition: Partition) -> int | None:
    """The first source offset of which another statement is known by now; None if there is none."""
    then, now = history(before, partition), history(after, partition)
    for offset in sorted({first for first, _ in (*then, *now)}):
        one, other = ([sql for first, sql in each if first <= offset][-1] for each in (then, now))
        if not one.is_that_of(other):
            return offset
    return None
