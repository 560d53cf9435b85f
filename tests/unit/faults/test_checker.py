"""The fault suite's checker finds each kind of violation, and none in a history that has none."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from testbed.comparison import Track
from tests.faults.checker import Kind, Violation, denied, misstatements, passed, taken, violations, violations_so_far
from tests.faults.history import History, Partition, Progress

PLACE: Partition = ("orders", 0)
SOURCE = ((0, 10), (1, 11), (2, 12), (4, 13), (5, 14))
"""Offset and fingerprint; offset 3 is a marker."""
COPIES = ((0, 10), (1, 11), (3, 12), (4, 13), (6, 14))
"""Three transactions, of two, two and one records."""
PROGRESS = (Progress(0, 0), Progress(2, 2), Progress(5, 4), Progress(6, 5))


def track(records: Sequence[tuple[int, int]]) -> Track:
    return Track(array("q", [offset for offset, _ in records]), array("Q", [record for _, record in records]))


def history(
    copies: Sequence[tuple[int, int]] = COPIES,
    progress: Sequence[Progress] = PROGRESS,
    observed: Sequence[tuple[int, int]] | None = None,
) -> History:
    return History(
        acknowledged={PLACE: [10, 11, 12, 13, 14]},
        aborted={PLACE: [99]},
        source={PLACE: track(SOURCE)},
        observed={PLACE: track(copies if observed is None else observed)},
        destination={PLACE: track(copies)},
        progress={PLACE: progress},
    )


def kinds(of: History, check: Callable[[History], Iterable[Violation]] = violations) -> set[Kind]:
    return {violation.kind for violation in check(of)}


def test_a_right_history_has_no_violations() -> None:
    assert violations(history()) == []
    assert violations_so_far(history()) == []


def test_an_empty_partition_has_no_violations() -> None:
    nothing = {PLACE: Track()}
    empty = History({PLACE: []}, {PLACE: []}, nothing, nothing, nothing, {PLACE: [Progress(0, 0)]})
    assert violations(empty) == []
    assert violations_so_far(empty) == []


def test_positions_past_markers_and_aborted_records_alone_are_right() -> None:
    later = (*PROGRESS, Progress(9, 5), Progress(12, 5))
    assert violations(history(progress=later)) == []


@pytest.mark.parametrize("count", range(len(COPIES)))
def test_a_right_run_has_no_violations_so_far(count: int) -> None:
    for known in range(len(PROGRESS)):
        so_far = history(observed=COPIES[:count], progress=PROGRESS[:known])
        assert violations_so_far(so_far) == []
        assert violations_so_far(replace(so_far, source={PLACE: track(SOURCE[:2])})) == []


def test_a_lost_record_is_found() -> None:
    lost = history((*COPIES[:2], *COPIES[3:]), PROGRESS)
    assert Kind.LOST in kinds(lost)
    assert Kind.LOST in kinds(lost, violations_so_far)


def test_a_record_lost_at_the_end_is_found() -> None:
    assert Kind.LOST in kinds(history(COPIES[:4], PROGRESS[:3]))


def test_a_write_that_was_acknowledged_and_is_in_neither_log_is_lost() -> None:
    gone = replace(history(COPIES[:4], PROGRESS[:3]), source={PLACE: track(SOURCE[:4])})
    assert kinds(gone) == {Kind.LOST}


def test_a_duplicate_is_found() -> None:
    doubled = history((*COPIES[:2], (3, 11), (4, 12), (5, 13), (7, 14)))
    assert Kind.DUPLICATED in kinds(doubled)
    assert Kind.DUPLICATED in kinds(doubled, violations_so_far)


def test_a_reordered_record_is_found() -> None:
    moved = history(((0, 11), (1, 10), *COPIES[2:]))
    assert kinds(moved) == {Kind.REORDERED}
    assert Kind.REORDERED in kinds(moved, violations_so_far)


def test_an_altered_record_is_found() -> None:
    altered = history((*COPIES[:3], (4, 77), COPIES[4]))
    assert Kind.ALTERED in kinds(altered)
    assert Kind.ALTERED in kinds(altered, violations_so_far)


def test_an_aborted_record_is_found() -> None:
    dirty = history((*COPIES, (7, 99)))
    assert Kind.ABORTED in kinds(dirty)
    assert Kind.ABORTED in kinds(dirty, violations_so_far)


def test_an_aborted_record_that_was_seen_and_has_gone_is_found() -> None:
    assert {Kind.ABORTED, Kind.RETRACTED} <= kinds(history(observed=(*COPIES[:3], (4, 99))))


def test_a_record_that_was_seen_and_is_another_now_is_found() -> None:
    assert kinds(history(observed=((0, 11), (1, 10)))) == {Kind.RETRACTED}


def test_a_record_that_was_seen_elsewhere_is_found() -> None:
    assert kinds(history(observed=((0, 10), (2, 11)))) == {Kind.RETRACTED}


def test_copies_without_their_position_are_found() -> None:
    torn = (*PROGRESS[:2], PROGRESS[3])
    assert kinds(history(progress=torn)) == {Kind.TORN}
    assert kinds(history(progress=torn), violations_so_far) == {Kind.TORN}


def test_the_last_copies_without_their_position_are_found() -> None:
    assert kinds(history(progress=PROGRESS[:-1])) == {Kind.TORN}


def test_a_position_without_its_copies_is_found() -> None:
    assert Kind.TORN in kinds(history(COPIES[:4]))


def test_a_position_that_counts_more_than_its_copies_is_found() -> None:
    assert Kind.TORN in kinds(history(progress=(*PROGRESS[:2], Progress(5, 5), PROGRESS[3])))


@pytest.mark.parametrize("wrong", [Progress(4, 4), Progress(1, 2)])
def test_a_position_that_names_another_offset_than_it_counts_is_found(wrong: Progress) -> None:
    index = 1 if wrong.records == 2 else 2
    progress = [*PROGRESS[:index], wrong, *PROGRESS[index + 1 :]]
    assert kinds(history(progress=progress)) == {Kind.TORN}
    assert kinds(history(progress=progress), violations_so_far) == {Kind.TORN}


def test_a_position_that_moved_back_is_found() -> None:
    assert Kind.BACKWARDS in kinds(history(progress=(*PROGRESS, PROGRESS[2], PROGRESS[3])))


def test_a_violation_names_its_partition() -> None:
    (found,) = violations(history(progress=PROGRESS[:-1]))
    assert str(found) == "torn transaction: orders-0: transaction 2 ended with record 5, and its position counts None"


def said(behind: int | None) -> dict[str, object]:
    return {"partitions": [{"topic": "orders", "partition": 0, "behind": behind}]}


@pytest.mark.parametrize(("behind", "is_right"), [(3, True), (4, True), (None, True), (2, False), (0, False)])
def test_a_promotion_that_tells_less_than_the_copy_lacks_is_found(behind: int | None, is_right: bool) -> None:
    lacking = track(COPIES[:2])  # the source's offsets 2 to 4 have no copy
    found = list(misstatements(said(behind), PLACE, track(SOURCE[:4]), lacking))
    assert [violation.kind for violation in found] == ([] if is_right else [Kind.MISSTATED])


def test_a_record_that_only_its_fingerprint_tells_from_the_copied_one_is_found() -> None:
    written_on = track([*SOURCE[:2], (2, 22), (4, 23), (5, 24)])
    found = list(misstatements(said(0), PLACE, written_on, track(COPIES)))
    assert [violation.kind for violation in found] == [Kind.MISSTATED]


@pytest.mark.parametrize(("diverged", "is_right"), [([2, 6], True), ([2, 5], False), ([6, 6], False)])
def test_a_failback_that_does_not_tell_what_the_copy_lacks_is_found(diverged: list[int], is_right: bool) -> None:
    partition = {"topic": "orders", "partition": 0, "diverged": diverged, "written_there": None}
    found = list(misstatements({"partitions": [partition]}, PLACE, track(SOURCE), track(COPIES[:2])))
    assert [violation.kind for violation in found] == ([] if is_right else [Kind.MISSTATED])


@pytest.mark.parametrize(("committed", "is_right"), [(0, True), (3, True), (4, False), (7, False)])
def test_a_group_past_what_it_has_read_is_found(committed: int, is_right: bool) -> None:
    found = list(passed(PLACE, 2, track(SOURCE), committed, track(COPIES)))
    assert [violation.kind for violation in found] == ([] if is_right else [Kind.PASSED])


@pytest.mark.parametrize(
    ("told", "is_right"),
    [
        ({}, True),
        ({"end_offset": None, "lag_records": None}, True),
        ({"next_offset": None, "copied": None, "lag_records": None}, True),
        ({"next_offset": None, "copied": None, "lag_records": 5}, True),
        ({"end_offset": 3, "lag_records": 0}, False),
        ({"lag_records": 0}, False),
        ({"copied": 3}, False),
        ({"next_offset": 1}, False),
    ],
)
def test_a_status_that_the_source_denies_is_found(told: dict[str, int | None], is_right: bool) -> None:
    offsets = [offset for offset, _ in SOURCE]
    at = offsets[2]  # two of the source's records are copied, and a consumer had seen four
    right = {"partition": 0, "next_offset": at, "copied": 2, "end_offset": offsets[3] + 1}
    right["lag_records"] = right["end_offset"] - at
    said = {"topics": [{"topic": "orders", "partitions": [right | told]}]}
    found = list(denied(said, PLACE, track(SOURCE), 4))
    assert bool(found) is not is_right
    assert {violation.kind for violation in found} <= {Kind.DENIED}


LANE: Partition = ("positions", 0)


def test_a_lane_that_only_active_replicators_have_taken_is_right() -> None:
    assert [*taken(LANE, ["vm0", "vm0", "vm1"], ["vm0", "vm1"])] == []
    assert [*taken(LANE, ["vm0", "vm1", "vm0"], ["vm0", "vm1", "vm0"])] == []
    assert [*taken(LANE, ["vm1"], ["vm0", "vm1"])] == []


@pytest.mark.parametrize("owners", [["vm0", "vm2", "vm1"], ["vm1", "vm0"], ["vm0", "vm1", "vm0"]])
def test_a_lane_that_a_standby_or_an_awakened_one_has_taken_is_found(owners: Sequence[str]) -> None:
    assert [violation.kind for violation in taken(LANE, owners, ["vm0", "vm1"])] == [Kind.TAKEN]
