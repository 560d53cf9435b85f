"""The changes of the link's SQL during a verification: what was compared by an older statement is no result."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.link_sql import SqlChange, history
from appliance.logs.model.span import CopyState
from appliance.verify.model.report import NEWEST_RECORDS, PartitionResult

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
    held, now = history(before, partition), history(after, partition)
    for offset in sorted({first for first, _ in (*held, *now)}):
        one, other = ([sql for first, sql in each if first <= offset][-1] for each in (held, now))
        if not one.is_that_of(other):
            return offset
    return None
