"""Every verdict on a partition, with logs instead of clusters."""

import itertools
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.kafka.records.batch import Batch
from appliance.link.model.claims import AdoptedPartition
from appliance.link.model.replicas import Replica
from appliance.logs.model.span import CopyState, Span
from appliance.logs.side import Side
from appliance.verify.model.report import PartitionResult
from appliance.verify.partition import verify_every_record
from appliance.verify.work import Job
from tests.support.batches import Written
from tests.support.logs import NOW, MemoryReader, end, log, raw_copy, rows

REPLICA = Replica("orders", 0, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))


async def verdict(
    source: list[Batch],
    copy: list[Batch],
    source_start: int = 0,
    copy_start: int = 0,
    asked_from: int = 0,
    source_end: int | None = None,
    copy_end: int | None = None,
    adopted: AdoptedPartition | None = None,
) -> PartitionResult:
    """The verdict for logs with these beginnings and ends; the destination has no time to catch up."""
    ours = Span(source_start, max(source_start, end(source)) if source_end is None else source_end)
    theirs = Span(copy_start, max(copy_start, end(copy)) if copy_end is None else copy_end)
    return await verify_every_record(
        Job(REPLICA, ours, theirs, compacted=False, adopted=adopted, asked_from=asked_from),
        Side(MemoryReader.of(source, ours), ours),
        Side(MemoryReader(copy, copy_start, max(copy_start, end(copy))), theirs, deadline=0.0),
        lambda _: None,
    )


async def test_a_raw_copy_is_equal_over_the_whole_log() -> None:
    source = log(rows(100), 30)
    found = await verdict(source, raw_copy(source))
    assert (found.state, found.records, found.detail) == (CopyState.EQUAL, 100, "")
    assert (found.source, found.destination) == (Span(0, 100), Span(0, 103))


async def test_empty_partitions_are_equal_with_no_records() -> None:
    found = await verdict([], [])
    assert (found.state, found.records) == (CopyState.EQUAL, 0)


async def test_a_copy_that_ends_early_is_behind_by_what_it_lacks() -> None:
    source = log(rows(100), 30)
    found = await verdict(source, raw_copy(source)[:2])
    assert (found.state, found.behind, found.records, found.words) == (CopyState.BEHIND, 40, 60, "behind by 40 records")


async def test_a_copy_that_has_not_begun_is_behind_by_everything() -> None:
    found = await verdict(log(rows(100)), [])
    assert (found.state, found.behind) == (CopyState.BEHIND, 100)


async def test_a_copy_that_ends_amid_the_first_time_is_behind() -> None:
    same_time = [(NOW, b"k", b"%d" % n, []) for n in range(50)] + rows(10, 1)
    found = await verdict(log(same_time, 20), log(same_time[:30], 30))
    assert (found.state, found.behind, found.records) == (CopyState.BEHIND, 30, 30)


async def test_records_that_the_source_got_after_the_beginning_are_neither_asked_for_nor_too_many() -> None:
    source = log(rows(100), 10)
    for there in (50, 70):
        found = await verdict(source, raw_copy(source[: there // 10]), source_end=50, copy_end=54)
        assert (found.state, found.records, found.source) == (CopyState.EQUAL, 50, Span(0, 50))


@pytest.mark.parametrize("codec", [0, 3])
async def test_an_altered_a_lost_a_doubled_and_a_swapped_record_are_found_at_their_source_offset(codec: int) -> None:
    source = log(rows(100), 10, first=7, gap=1, codec=codec)
    altered = [*rows(42), (NOW + 42, b"key 42", b"other", []), *rows(57, 43)]
    lost = rows(42) + rows(57, 43)
    doubled = rows(42) + rows(59, 41)
    swapped = rows(42) + rows(1, 43) + rows(1, 42) + rows(56, 44)
    for copy in (altered, lost, doubled, swapped):
        found = await verdict(source, log(copy, 25, codec=codec), source_start=7)
        assert (found.state, found.differs_at, found.records) == (CopyState.DIFFERS, 7 + 42 + 4, 42)
        assert found.words == "differs at source offset 53"


@pytest.mark.parametrize("place", [0, 1, 99])
async def test_an_altered_record_is_found_wherever_it_is(place: int) -> None:
    altered = rows(100)
    altered[place] = (NOW + place, None, b"other", [])
    found = await verdict(log(rows(100), 10), log(altered, 30))
    assert (found.state, found.differs_at, found.records) == (CopyState.DIFFERS, place, place)


async def test_records_past_the_sources_end_are_a_difference_there() -> None:
    found = await verdict(log(rows(100), 10), log(rows(100) + rows(2, 98), 30))
    assert (found.state, found.differs_at, found.records) == (CopyState.DIFFERS, 100, 100)
    assert "2 records more at its end, from its offset 100 on" in found.detail


async def test_records_of_a_source_that_never_had_any_are_a_difference() -> None:
    found = await verdict([], log(rows(3)))
    assert (found.state, found.differs_at) == (CopyState.DIFFERS, 0)


async def test_what_the_sources_retention_took_is_named_and_the_rest_is_equal() -> None:
    source = log(rows(100), 10)
    found = await verdict(source[4:], raw_copy(source), source_start=43)
    assert (found.state, found.records) == (CopyState.EQUAL, 57)
    assert (found.source, found.destination) == (Span(43, 100), Span(47, 109))
    assert "destination offsets 0 to 47, up to 47 records, were not compared" in found.detail


async def test_case_830_an_emptied_source_excuses_nothing_in_the_copy() -> None:
    # Before, it was "equal", whatever the copy held, and with exit code 0.
    for copied in (20, 7):
        found = await verdict([], log(rows(copied)), source_start=20)
        assert (found.state, found.records) == (CopyState.NOT_COMPARED, 0)
        assert f"{copied} records of the destination, from its offset 0 to {copied}, have no source" in found.detail
    found = await verdict([], [], source_start=20)
    assert (found.state, found.detail.split(": ")[1][:10]) == (CopyState.NOT_COMPARED, "0 records ")
    assert (await verdict([], [], source_start=20, copy_start=22)).state is CopyState.EQUAL


async def test_case_831_the_copys_retention_excuses_no_more_records_than_its_log_has_lost() -> None:
    # Before, any start of the copy's log but 0 excused everything before its first record.
    source = log(rows(100), 10)
    found = await verdict(source, log(rows(60, 40), 10, first=5), copy_start=5)
    assert (found.state, found.differs_at) == (CopyState.DIFFERS, 0)
    assert "of 40 records, its retention can have taken 5" in found.detail
    for first in (40, 43):
        found = await verdict(source, log(rows(60, 40), 10, first=first), copy_start=first)
        assert (found.state, found.records) == (CopyState.EQUAL_IN_PART, 60)
    assert (await verdict(source, log(rows(59, 41), 10, first=40), copy_start=40)).state is CopyState.DIFFERS


async def test_case_832_the_link_excuses_only_records_from_before_its_beginning() -> None:
    # Before, START=latest in today's settings excused any beginning, and START=earliest none.
    source = log(rows(100), 10)
    lost = await verdict(source, log(rows(37, 63), 10), asked_from=60)
    assert (lost.state, lost.differs_at) == (CopyState.DIFFERS, 60)
    more = await verdict(source, log(rows(47, 53), 10), asked_from=60)
    assert (more.state, more.records) == (CopyState.EQUAL_IN_PART, 47)
    nothing_due = await verdict(source, [], asked_from=100)
    assert (nothing_due.state, nothing_due.records) == (CopyState.EQUAL_IN_PART, 0)
    behind = await verdict(source, [], asked_from=63)
    assert (behind.state, behind.behind) == (CopyState.BEHIND, 37)
    surplus = await verdict(source, log(rows(3, 200)), asked_from=100)
    assert surplus.state is CopyState.DIFFERS


async def test_case_831_what_another_program_did_not_copy_before_the_link_is_not_due() -> None:
    source, adopted = log(rows(100), 10), AdoptedPartition(0, 60, 3)
    for first, state in ((70, CopyState.EQUAL_IN_PART), (75, CopyState.DIFFERS)):
        copy = log(rows(100 - first, first), 10, first=12)
        assert (await verdict(source, copy, copy_start=12, adopted=adopted)).state is state


async def test_case_832_of_records_that_are_all_the_same_the_link_tells_where_it_began() -> None:
    beats: list[Written] = [(NOW, b"", b"beat", [])] * 30
    found = await verdict(log(beats, 10), log(beats[:17], 10), asked_from=13)
    assert (found.state, found.records, found.source) == (CopyState.EQUAL_IN_PART, 17, Span(13, 30))
    found = await verdict(log(beats, 10), log(beats[:16], 10), asked_from=13)
    assert (found.state, found.behind) == (CopyState.BEHIND, 1)


async def test_case_833_the_sources_retention_excuses_no_more_records_than_its_log_has_lost() -> None:
    source = log(rows(50, 50), 10, first=50)
    found = await verdict(source, raw_copy(log(rows(20) + rows(50) + rows(50, 50), 10)), source_start=50)
    assert (found.state, found.differs_at) == (CopyState.DIFFERS, 50)
    assert "70 records" in found.detail
    assert "which has deleted 50 records at most" in found.detail


async def test_retention_amid_one_and_the_same_record_again_and_again_is_no_false_alarm() -> None:
    beats = [(NOW, b"", b"beat", [])] * 30 + [(NOW + 1, b"", b"beat", [])] * 30
    found = await verdict(log(beats, 10), log(beats, 60), source_start=13)
    assert (found.state, found.records, found.destination) == (CopyState.EQUAL, 47, Span(13, 60))


async def test_retention_in_a_log_of_one_record_again_and_again_is_no_false_alarm() -> None:
    beats: list[Written] = [(NOW, b"", b"beat", [])] * 30
    found = await verdict(log(beats, 10)[1:], log(beats, 30), source_start=13)
    assert (found.state, found.records) == (CopyState.EQUAL, 17)
    found = await verdict(log(beats, 10)[1:], log(beats[:15], 15), source_start=13)
    assert (found.state, found.behind) == (CopyState.BEHIND, 2)


async def test_retention_that_outran_the_copy_is_behind_and_says_that_something_may_lie_in_between() -> None:
    found = await verdict(log(rows(50, 50), 10, first=50), log(rows(30), 10), source_start=50)
    assert (found.state, found.behind) == (CopyState.BEHIND, 50)
    assert "deleted before it was copied" in found.detail


async def test_older_records_than_a_source_that_deleted_none_are_a_difference() -> None:
    found = await verdict(log(rows(50, 50), 10), log(rows(100), 10))
    assert (found.state, found.differs_at) == (CopyState.DIFFERS, 0)
    assert "made anew" in found.detail


async def test_records_that_start_latest_left_out_are_named_and_the_rest_is_equal() -> None:
    found = await verdict(log(rows(100), 10), log(rows(37, 63), 10), asked_from=63)
    assert (found.state, found.records, found.source) == (CopyState.EQUAL_IN_PART, 37, Span(63, 100))
    assert found.words == "equal from source offset 63"
    assert "REPLICA_TOPICS_START did not ask" in found.detail


async def test_what_the_destinations_retention_took_is_named_and_the_rest_is_equal() -> None:
    source = log(rows(100), 10)
    found = await verdict(source, raw_copy(source)[5:], copy_start=57)
    assert (found.state, found.records, found.source) == (CopyState.EQUAL_IN_PART, 48, Span(52, 100))
    assert "moved the start of its log to 57" in found.detail


async def test_a_beginning_that_nothing_explains_is_lost() -> None:
    found = await verdict(log(rows(100), 10), log(rows(99, 1), 10))
    assert (found.state, found.differs_at) == (CopyState.DIFFERS, 0)
    assert found.detail == "source records before offset 1 are not at the destination"


async def test_a_copy_in_part_can_be_behind_too() -> None:
    found = await verdict(log(rows(100), 10), log(rows(20, 63), 10), asked_from=63)
    assert (found.state, found.behind, found.records) == (CopyState.BEHIND, 17, 20)
    assert "before offset 63" in found.detail


async def test_a_destination_that_its_retention_has_emptied_is_not_compared() -> None:
    found = await verdict(log(rows(10)), [], copy_start=5)
    assert (found.state, found.records) == (CopyState.NOT_COMPARED, 0)
    assert found.detail


async def test_records_without_a_time_are_aligned_too() -> None:
    timeless: list[Written] = [(-1, None, b"%d" % n, []) for n in range(50)]
    found = await verdict(log(timeless, 10), log(timeless, 25), source_start=13)
    assert (found.state, found.records) == (CopyState.EQUAL, 37)


sizes = st.lists(st.integers(1, 12), min_size=1, max_size=6)


@given(
    steps=st.lists(st.sampled_from([0, 0, 0, 1]), min_size=1, max_size=60),
    values=st.integers(1, 3),
    our_sizes=sizes,
    their_sizes=sizes,
    data=st.data(),
)
async def test_a_true_copy_is_never_said_to_differ_and_is_equal_or_behind_by_the_right_number(
    steps: list[int], values: int, our_sizes: list[int], their_sizes: list[int], data: st.DataObject
) -> None:
    """Any retention on each side, any progress, repeated records, and times that never decrease."""
    times = [NOW + passed for passed in itertools.accumulate(steps)]
    written: list[Written] = [(time, None, b"%d" % (n % values), []) for n, time in enumerate(times)]
    count = len(written)
    source_start = data.draw(st.integers(0, count - 1))
    copied = data.draw(st.integers(0, count) | st.just(count))
    copy_start = data.draw(st.integers(0, copied))
    source = [b for b in log(written, *our_sizes) if b.header.last_offset >= source_start]
    copy = [b for b in log(written[:copied], *their_sizes) if b.header.last_offset >= copy_start]
    found = await verdict(source, copy, source_start, copy_start)
    one_time = times[source_start] == times[-1] or (copied > copy_start and times[copy_start] == times[copied - 1])
    if one_time and (source_start or copy_start):
        return  # among equal records all places are equivalent
    if copied and source_start and times[copied - 1] == times[source_start]:
        return  # all common records are equal, or the copy's last record equals one that the source still has
    assert found.state is not CopyState.DIFFERS
    if found.state.well:
        assert copied == count
        assert found.records == count - max(source_start, copy_start)
    if copied == count and copy_start < copied:
        assert found.state.well
    if found.state is CopyState.BEHIND:
        assert found.behind == min(count - copied, count - source_start)


@given(
    count=st.integers(1, 50),
    place=st.integers(0, 49),
    kind=st.sampled_from(["altered", "lost", "doubled"]),
    our_sizes=sizes,
    their_sizes=sizes,
)
async def test_a_copy_that_is_wrong_anywhere_is_never_said_to_be_equal(
    count: int, place: int, kind: str, our_sizes: list[int], their_sizes: list[int]
) -> None:
    place %= count
    copy = rows(count)
    wrong: dict[str, list[Written]] = {"altered": [(NOW + place, None, b"other", [])], "doubled": 2 * rows(1, place)}
    copy[place : place + 1] = wrong.get(kind, [])
    found = await verdict(log(rows(count), *our_sizes), log(copy, *their_sizes))
    if kind == "lost" and place == count - 1:
        assert (found.state, found.behind) == (CopyState.BEHIND, 1)
    else:
        assert found.state is CopyState.DIFFERS
        doubled = kind == "doubled" and (place > 0 or count == 1)  # the first one is before the source's first
        assert found.differs_at == place + doubled
