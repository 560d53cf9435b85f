"""The rows of the benchmark of SQL in flight, from its trials."""

import pytest

from bench.cases.transform import Trial, costs, delays, speeds
from bench.lib.footprint import Reading, Spent, at
from bench.lib.latency_figures import Figures
from bench.lib.row import Row

OURS, THEIRS, BARE = "our replicator", "MirrorMaker 2", "our replicator, no SQL"
TRIALS = {
    OURS: [Trial(200.0, Spent(500, 9), Spent(300, 4)), Trial(220.0, Spent(490, 11), Spent(310, 5))],
    THEIRS: [Trial(100.0, Spent(900, 7), Spent(0, 0)), Trial(110.0, Spent(1000, 8), Spent(0, 0))],
    BARE: [Trial(800.0, Spent(240, 0.5), Spent(260, 1))],
}


def test_rates_are_medians_beside_each_contender_and_the_goals_are_those_against_the_peer() -> None:
    title = "500-byte records, half left out, a field masked"
    assert speeds(TRIALS) == [
        Row(title, "records/s", 210, THEIRS, 105, 1.0),
        Row(title, "records/s", 210, BARE, 800),
    ]


def test_costs_are_the_median_time_and_the_highest_memory_beside_each_that_has_such_processes() -> None:
    assert costs(TRIALS) == [
        Row("Java, for a million records", "s of processor", 10, THEIRS, 7.5),
        Row("memory of Java", "MB", 500, THEIRS, 1000),
        Row("Java, for a million records", "s of processor", 10, BARE, 0.5),
        Row("memory of Java", "MB", 500, BARE, 240),
        Row("Python, for a million records", "s of processor", 4.5, BARE, 1),
        Row("memory of Python", "MB", 310, BARE, 260),
    ]


def test_a_contender_that_never_came_to_count_has_no_row() -> None:
    assert {row.peer_name for row in (*speeds({**TRIALS, THEIRS: []}), *costs({**TRIALS, THEIRS: []}))} == {BARE}


def test_the_latency_is_beside_that_without_sql_and_its_p99_beside_the_limit() -> None:
    assert delays(5000, {OURS: Figures(100, 300, 400), BARE: Figures(20, 60, 80)}) == [
        Row("latency p50 at 5000/s", "ms", 100, BARE, 20),
        Row("latency p99 at 5000/s", "ms", 300, BARE, 60),
        Row("latency max at 5000/s", "ms", 400, BARE, 80),
        Row("latency p99 at 5000/s", "ms", 300, "limit", 1000, 1.0),
    ]


def test_a_reading_is_the_last_one_until_then() -> None:
    readings = [Reading(float(when), when, when) for when in range(3)]
    assert [at(readings, when).at for when in (-1.0, 0.5, 1.0, 9.0)] == [0.0, 0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="no reading"):
        at([], 1.0)
