"""The rows of the latency benchmark, from the records' times."""

from array import array

import pytest

from bench.cases.latency import rows
from bench.lib.latency_figures import Figures, Sample, Stamp, percentile, samples_of
from bench.lib.latency_receiver import Received
from bench.lib.row import Row


def figures(p50: float, p99: float, highest: float) -> Figures:
    return Figures(p50, p99, highest)


def test_a_value_says_its_number_and_when_it_was_sent_and_is_as_long_as_its_filler() -> None:
    value = Stamp(7, 123_456_789).value(b"x" * 500)
    assert len(value) == 500
    assert Stamp.of(value) == Stamp(7, 123_456_789)


def test_the_record_that_woke_whoever_copies_is_not_among_those_received() -> None:
    values = [None, *(Stamp(number, 1_000 + number).value(b"") for number in range(2))]
    received = Received(2)
    for value in values:
        received.take(value, now=2_000)
    assert received.times.tolist() == [1_000, 2_000, 1_001, 2_000]
    assert received.missing == 0


def test_of_a_copy_that_leaves_records_out_only_the_others_are_received() -> None:
    received = Received(2, every=3)
    for number in (0, 3, 3):
        received.take(Stamp(number, 1_000 + number).value(b""), now=2_000)
    assert received.times.tolist() == [1_000, 2_000, 1_003, 2_000]
    assert received.missing == 0
    with pytest.raises(ValueError, match="record 4 is in the copy"):
        received.take(Stamp(4, 1_004).value(b""), now=2_000)


@pytest.mark.parametrize(("share", "expected"), [(0.50, 50), (0.99, 99), (0.001, 1), (1.0, 100)])
def test_a_percentile_is_a_value_that_was_measured(share: float, expected: float) -> None:
    assert percentile(range(100, 0, -1), share) == expected


def test_records_that_were_sent_in_the_first_seconds_are_not_counted() -> None:
    noted = array("q", [5_000_000_000, 5_900_000_000, 6_000_000_000, 6_030_000_000, 7_000_000_000, 7_020_000_000])
    assert samples_of(noted.tobytes(), warming_seconds=1) == [Sample(6.0, 30.0), Sample(7.0, 20.0)]


def test_a_copys_figures_are_of_all_its_samples() -> None:
    samples = [Sample(9.4, 500.0), Sample(9.6, 10.0), Sample(10.4, 30.0), Sample(10.6, 400.0)]
    assert Figures.of(samples) == figures(30.0, 500.0, 500.0)


def test_percentiles_are_medians_of_the_runs_and_the_highest_is_that_of_all() -> None:
    ours = [figures(10, 40, 90), figures(12, 44, 70), figures(11, 60, 80)]
    theirs = [figures(20, 50, 100), figures(22, 70, 300), figures(21, 60, 200)]
    assert rows(200, ours, theirs) == [
        Row("latency p50 at 200/s", "ms", 11, "MirrorMaker 2", 21),
        Row("latency p99 at 200/s", "ms", 44, "MirrorMaker 2", 60),
        Row("latency max at 200/s", "ms", 90, "MirrorMaker 2", 300),
        Row("latency p99 at 200/s", "ms", 44, "limit", 60),
    ]


def test_only_the_rate_that_has_a_limit_is_beside_one() -> None:
    names = {(row.name, row.peer_name) for row in rows(5000, [figures(1, 2, 3)], [figures(1, 2, 3)])}
    assert names == {(f"latency {figure} at 5000/s", "MirrorMaker 2") for figure in ("p50", "p99", "max")}
