"""The records on which the link's SQL fails: each is a dead letter that is still there, or the copy is not whole."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.naming import DEAD_LETTERS
from appliance.verify.model.report import CopyState, PartitionResult, counted
from appliance.verify.reader import Choose, Reader, spans
from appliance.verify.side import Side


def with_failures(results: Iterable[PartitionResult], lanes: Sequence[LaneCheckpoint]) -> list[PartitionResult]:
    """The results, without the good ones whose link stands at a record on which its SQL fails, or has skipped some."""
    return [each if each.failed_at is None or not each.state.well else _with_failure(each, lanes) for each in results]


def _with_failure(result: PartitionResult, lanes: Iterable[LaneCheckpoint]) -> PartitionResult:
    assert result.source is not None
    assert result.failed_at is not None
    fails, key = f"the SQL fails on the record at source offset {result.failed_at}", (result.topic, result.partition)
    held = next((position for lane in lanes for of, position in lane.positions.items() if of == key), None)
    if held is None or held.next_offset < min(result.failed_at + 1, result.source.end):
        why = (held and held.stopped) or "the link has not passed it"
        detail = f"{fails}, which is neither copied nor a dead letter: {why}"
        return replace(result, state=CopyState.BEHIND, detail=detail, behind=1)
    for gap in (gap for lane in lanes for gap in lane.gaps.values() if gap.partition == key):
        if gap.source_id == held.source_id and gap.first < result.source.end and gap.next > result.source.start:
            detail = f"{fails}; source offsets {gap.first} to {gap.next} were skipped: {gap.cause}"
            return replace(result, state=CopyState.DIFFERS, detail=detail, differs_at=gap.first)
    return result


async def with_letters(
    results: Iterable[PartitionResult],
    lanes: Iterable[LaneCheckpoint],
    destination: KafkaCluster,
    choose: Choose | None,
) -> list[PartitionResult]:
    """The results, without the good ones of which more dead letters are lost than retention can have taken.

    Raises:
        PartitionStopped, BatchCorrupt, BrokerBusy, BrokerRefused, Unreachable, PeerError: as ``Reader.read``.
    """
    positions = {key: position for lane in lanes for key, position in lane.positions.items()}
    found = []
    for each in results:
        at = positions.get((each.topic, each.partition or 0))
        lost = at and each.state.well and at.dead_letters - await _letters(destination, choose, each)
        detail = f"the destination lacks {counted(lost or 0, 'dead letter')} of {at and at.dead_letters}"
        found.append(replace(each, state=CopyState.DIFFERS, detail=detail) if lost and lost > 0 else each)
    return found


async def _letters(destination: KafkaCluster, choose: Choose | None, result: PartitionResult) -> int:
    """Number of dead letters of a partition that are there, or that retention can have taken."""
    partition = result.copy + DEAD_LETTERS, result.partition or 0
    metadata = await destination.metadata([partition[0]])
    if partition[0] not in metadata.topics:
        return 0
    span = (await spans(destination, metadata, [partition]))[partition]
    side = Side(Reader(destination, partition, "verify-dead-letters", span.start, choose), span)
    return span.start + await side.count_between(span.start, span.end)
