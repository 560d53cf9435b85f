"""Every verdict on a partition of a compacted topic, with logs instead of clusters."""

import uuid

from appliance.engine.model.ranges import Outcome
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.replicas import Replica
from appliance.logs.model.span import CopyState, Span
from appliance.verify.compacted import verify_newest_records
from appliance.verify.model.report import NEWEST_RECORDS, PartitionResult
from appliance.verify.sql import CopiedBySql
from appliance.verify.work import Job
from tests.support.batches import Written
from tests.support.logs import NOW, MemoryReader, end, log

REPLICA = Replica("users", 0, "users.copy", uuid.UUID(int=1), uuid.UUID(int=2))
HISTORY: list[Written] = [(NOW + n, b"key %d" % (n % 7), b"value %d" % n, []) for n in range(50)]


async def verdict(
    source: list[Written],
    copy: list[Written],
    source_start: int = 0,
    copy_start: int = 0,
    asked_from: int = 0,
    left_out: bool = False,
) -> PartitionResult:
    ours, theirs = log(source, 3, first=source_start), log(copy, 5, first=copy_start)
    spans = Span(source_start, max(source_start, end(ours))), Span(copy_start, max(copy_start, end(theirs)))
    return await verify_newest_records(
        Job(REPLICA, *spans, compacted=True, asked_from=asked_from),
        MemoryReader.of(ours, spans[0]),
        MemoryReader.of(theirs, spans[1]),
        0.0,
        lambda _: None,
        LeavesOut({}, unused) if left_out else None,
    )


async def unused(*_: object) -> Outcome:
    raise AssertionError


class LeavesOut(CopiedBySql):
    """SQL that has left out some of the records."""

    def may_lack_keys(self, partition: Partition) -> bool:  # noqa: ARG002
        return True


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


async def test_case_834_a_key_of_one_side_alone_is_excused_only_if_it_is_older_than_all_that_are_equal() -> None:
    # Before, a start of the copy's log but 0 excused any key that the copy lacks, and the source's any other.
    another: Written = (NOW, b"another", b"v", [])
    lost = HISTORY[:44] + HISTORY[45:]
    more: Written = (NOW, b"more", b"v", [])
    for source_start, copy, expected in (
        (9, [*HISTORY[:30], another, *HISTORY[30:]], CopyState.EQUAL),
        (9, [*HISTORY, another], CopyState.DIFFERS),
        (2, [another, more, *HISTORY], CopyState.EQUAL),
        (1, [another, more, *HISTORY], CopyState.DIFFERS),
    ):
        assert (await verdict(HISTORY, copy, source_start=source_start)).state is expected
    few = [(NOW + n, b"once %d" % n, b"v", []) for n in range(20)]
    for missing, start, expected in ((0, 9, CopyState.EQUAL_IN_PART), (10, 9, CopyState.DIFFERS)):
        copy = few[:missing] + few[missing + 1 :]
        assert (await verdict(few, copy, copy_start=start)).state is expected
    assert (await verdict(few, few[10:], copy_start=9)).state is CopyState.DIFFERS
    assert (await verdict(HISTORY, lost, copy_start=9)).state is CopyState.DIFFERS


async def test_case_834_a_compacted_source_that_retention_has_emptied_excuses_nothing_in_the_copy() -> None:
    found = await verdict([], HISTORY, source_start=50)
    assert (found.state, found.detail[:7]) == (CopyState.NOT_COMPARED, "7 keys ")
    assert (await verdict([], [], source_start=50)).state is CopyState.NOT_COMPARED
    assert (await verdict([], [], source_start=50, copy_start=51)).state is CopyState.EQUAL


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
    found = await verdict(old + HISTORY, HISTORY, asked_from=1)
    assert found.state is CopyState.EQUAL_IN_PART
    assert "REPLICA_TOPICS_START has left" in found.detail
    assert (await verdict(HISTORY, [], asked_from=50)).state is CopyState.EQUAL_IN_PART
    assert (await verdict(HISTORY, [], asked_from=49)).state is CopyState.BEHIND
    lost = HISTORY[:45] + HISTORY[46:]
    assert (await verdict(HISTORY, lost[43:], asked_from=43)).state is CopyState.DIFFERS


async def test_empty_partitions_are_equal_with_no_records() -> None:
    found = await verdict([], [])
    assert (found.state, found.records) == (CopyState.EQUAL, 0)


async def test_case_542_the_source_offset_of_a_difference_says_nothing_of_the_offset_of_its_cause() -> None:
    # What the SQL leaves out may be the newest record of a key, which is then compared by an older one.
    newer: Written = (NOW + 60, b"key 3", b"of newer SQL", [])
    found = await verdict(HISTORY, [*HISTORY, newer])
    assert (found.state, found.differs_at) == (CopyState.DIFFERS, 45)
