"""The rows of the offsets benchmark, and the judgement of an offset by its records."""

import pytest

from bench.__main__ import main
from bench.cases.offsets import chosen, rows
from bench.lib.group_offsets import OffsetErrors, errors
from bench.lib.numbered_records import Read
from bench.lib.row import Row

# Offset 3 is a marker, and 4 and 5 are aborted; the copy has its own marker at 2.
SOURCE: Read = {0: {0: 10, 1: 11, 2: 12, 6: 16, 7: 17}}
COPY: Read = {0: {0: 10, 1: 11, 3: 12, 4: 16}}


def judged(at_source: int, at_destination: int, copy: Read = COPY) -> OffsetErrors:
    return errors(SOURCE, copy, {"bench-0": {0: at_source}}, {"bench-0": {0: at_destination}})


@pytest.mark.parametrize(("at_source", "at_destination"), [(0, 0), (2, 2), (2, 3), (3, 4), (5, 4), (6, 4), (7, 5)])
def test_an_offset_is_exact_where_the_next_record_is_the_same(at_source: int, at_destination: int) -> None:
    assert judged(at_source, at_destination) == OffsetErrors(exact=1)


def test_an_offset_too_low_reads_records_again() -> None:
    assert judged(6, 1) == OffsetErrors(again=2, most_again=2)


def test_an_offset_too_high_misses_records() -> None:
    assert judged(1, 4) == OffsetErrors(missed=2)


def test_a_record_that_comes_again_later_is_not_missed() -> None:
    assert judged(1, 3, {0: {0: 10, 1: 11, 2: 12, 3: 11, 4: 12}}) == OffsetErrors(exact=1)


def test_an_offset_that_was_never_committed_is_missing() -> None:
    at_source = {"bench-0": {0: 6}, "bench-1": {0: 2}, "bench-2": {0: 7}}
    at_destination = {"bench-0": {0: 1}, "bench-1": {}, "bench-2": {0: 3}}
    expected = OffsetErrors(missing=1, again=4, most_again=2)
    assert errors(SOURCE, COPY, at_source, at_destination) == expected


def test_every_error_is_beside_the_peers_for_both_halves_of_the_groups() -> None:
    ours, theirs = OffsetErrors(exact=48), OffsetErrors(10, 2, 900, 70, 1)
    measured = rows((ours, OffsetErrors(exact=24)), (theirs, OffsetErrors(exact=12)), 3)
    assert measured[:5] == [
        Row("anywhere: exact of 48", "offsets", 48, "MirrorMaker 2", 10),
        Row("anywhere: missing of 48", "offsets", 0, "MirrorMaker 2", 2),
        Row("anywhere: read again", "records", 0, "MirrorMaker 2", 900),
        Row("anywhere: read again, at most", "records", 0, "MirrorMaker 2", 70),
        Row("anywhere: missed", "records", 0, "MirrorMaker 2", 1),
    ]
    assert measured[5] == Row("near the end: exact of 24", "offsets", 24, "MirrorMaker 2", 12)


def test_every_second_group_is_near_the_end_and_the_others_are_within_the_history() -> None:
    offsets = chosen(["a", "b"], [10, 20], [5_000, 300])
    assert all(0 <= offset <= last for offset, last in zip(offsets["a"], [10, 20], strict=True))
    assert 4_500 <= offsets["b"][0] <= 5_000
    assert 0 <= offsets["b"][1] <= 300


@pytest.mark.parametrize("option", ["--groups", "--records"])
def test_a_number_that_is_none_is_refused(option: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["offsets", option, "0"])
    assert caught.value.code == 2
