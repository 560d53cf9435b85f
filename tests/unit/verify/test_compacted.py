"""Every verdict on a partition of a compacted topic, with logs instead of clusters."""

import uuid

from appliance.link.model.replicas import Replica
from appliance.verify.compacted import verify_newest_records
from appliance.verify.model.report import NEWEST_RECORDS, CopyState, PartitionResult, Span
from appliance.verify.partition import Terms
from tests.support.batches import Written
from tests.support.logs import NOW, LogReader, end, log

REPLICA = Replica("users", 0, "users.copy", uuid.UUID(int=1), uuid.UUID(int=2))
HISTORY: list[Written] = [(NOW + n, b"key %d" % (n % 7), b"value %d" % n, []) for n in range(50)]


async def verdict(
    source: list[Written],
    copy: list[Written],
    source_start: int = 0,
    copy_start: int = 0,
    latest: bool = False,
    left_out: bool = False,
) -> PartitionResult:
    ours, theirs = log(source, 3, first=source_start), log(copy, 5, first=copy_start)
    return await verify_newest_records(
        REPLICA,
        LogReader.of(ours, Span(source_start, max(source_start, end(ours)))),
        LogReader.of(theirs, Span(copy_start, max(copy_start, end(theirs)))),
        max(source_start, end(ours)),
        Terms(latest, 0.0),
        lambda _: None,
        lambda: left_out,
    )


async def test_sides_that_were_compacted_differently_are_equal() -> None:
    found = await verdict(HISTORY, HISTORY[43:])
    assert (found.state, found.records, found.compared) == (CopyState.EQUAL, 7, NEWEST_RECORDS)
    assert found.source == Span(0, 50)
    assert found.digest == (await verdict(HISTORY[40:], HISTORY)).digest


async def test_a_copy_that_ends_early_is_behind_by_the_keys_that_changed_since() -> None:
    found = await verdict(HISTORY, HISTORY[:48])
    assert (found.state, found.behind, found.words) == (CopyState.BEHIND, 2, "behind by 2 keys")
    found = await verdict(HISTORY, [])
    assert (found.state, found.behind) == (CopyState.BEHIND, 7)


async def test_a_newest_record_that_is_lost_or_altered_is_found_at_its_source_offset() -> None:
    altered = [*HISTORY[:45], (NOW + 45, b"key 3", b"other", []), *HISTORY[46:]]
    for copy in (altered, HISTORY[:45] + HISTORY[46:], HISTORY[43:45] + HISTORY[46:]):
        found = await verdict(HISTORY, copy)
        assert (found.state, found.differs_at) == (CopyState.DIFFERS, 45)


async def test_a_key_that_only_the_destination_has_is_a_difference_unless_retention_explains_it() -> None:
    copy = [(NOW, b"another", b"v", []), *HISTORY]
    found = await verdict(HISTORY, copy)
    assert (found.state, found.differs_at, found.words) == (CopyState.DIFFERS, None, "differs")
    assert "from its offset 0 on" in found.detail
    found = await verdict(HISTORY, copy, source_start=9)
    assert found.state is CopyState.EQUAL
    assert "1 key of the destination may be older" in found.detail


async def test_case_479_a_key_whose_newest_record_the_sql_leaves_out_is_no_difference_and_not_called_equal() -> None:
    # Before, a right copy differed as soon as compaction had taken the older record from the source.
    copy = [(NOW, b"left out later", b"v", []), *HISTORY]
    for start in (0, 9):
        found = await verdict(HISTORY, copy, source_start=start, left_out=True)
        assert (found.state, found.records) == (CopyState.NOT_COMPARED, 7)
        assert "the destination alone has 1 key, from its offset 0 on: compaction may have taken" in found.detail
    assert (await verdict(HISTORY, HISTORY, left_out=True)).state is CopyState.EQUAL
    assert (await verdict(HISTORY, HISTORY[:45] + HISTORY[46:], left_out=True)).state is CopyState.DIFFERS


async def test_keys_that_the_destination_was_not_asked_for_or_has_let_go_are_named() -> None:
    old: list[Written] = [(NOW, b"old", b"v", [])]
    found = await verdict(old + HISTORY, HISTORY, copy_start=1)
    assert (found.state, found.words) == (CopyState.EQUAL_IN_PART, "equal in part")
    assert "its retention has left 1 key out" in found.detail
    found = await verdict(old + HISTORY, HISTORY, latest=True)
    assert "REPLICA_TOPICS_START=latest" in found.detail
    found = await verdict(HISTORY, [], latest=True)
    assert found.state is CopyState.NOT_COMPARED


async def test_empty_partitions_are_equal_with_no_records() -> None:
    found = await verdict([], [])
    assert (found.state, found.records) == (CopyState.EQUAL, 0)


async def test_case_542_the_source_offset_of_a_difference_says_nothing_of_the_offset_of_its_cause() -> None:
    # What the SQL leaves out may be the newest record of a key, which is then compared by an older one.
    newer: Written = (NOW + 60, b"key 3", b"of newer SQL", [])
    found = await verdict(HISTORY, [*HISTORY, newer])
    assert (found.state, found.differs_at) == (CopyState.DIFFERS, 45)
