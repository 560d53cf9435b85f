"""The rows of the topics benchmark, from trials with few and with many topics."""

import math
from dataclasses import replace

import pytest

from bench.__main__ import main
from bench.cases.topics import Trial, rows
from bench.lib.footprint import Cost, Footprint
from bench.lib.row import Row

FEW = Trial(
    100, 6, 3, Footprint(Cost(300, 1), Cost(200, 2)), Footprint(Cost(300, 2), Cost(210, 30)), [0.03, 0.02, 0.09]
)
MANY = Trial(1_000, 20, 4, Footprint(Cost(300, 1), Cost(400, 8)), Footprint(Cost(300, 2), Cost(450, 120)), [0.2])
PEER = Trial(1_000, 60, 9, Footprint(Cost(900, 9), Cost(0, 0)), Footprint(Cost(950, 90), Cost(0, 0)), [0.1])

OURS = [
    Row("a new topic", "s", 4, "limit", 5, 1),
    Row("memory of Python", "MB", 450, "limit", 1_000, 1),
    Row("start-up", "s", 20, "100 topics", 6),
    Row("idle Python", "% of a core", 8, "100 topics", 2, 10),
    Row("busy Python", "% of a core", 120, "100 topics", 30, 10),
    Row("delay under load", "ms", 200, "100 topics", 30),
]


def test_ours_is_beside_the_limits_and_beside_ours_with_few_topics() -> None:
    assert rows(FEW, MANY, None) == OURS


def test_the_peer_is_beside_ours_with_as_many_topics() -> None:
    assert rows(FEW, MANY, PEER) == [
        *OURS,
        Row("start-up", "s", 20, "MirrorMaker 2", 60),
        Row("a new topic", "s", 4, "MirrorMaker 2", 9),
        Row("idle with Java", "% of a core", 9, "MirrorMaker 2", 9),
        Row("busy with Java", "% of a core", 122, "MirrorMaker 2", 90),
        Row("memory with Java", "MB", 750, "MirrorMaker 2", 950),
        Row("delay under load", "ms", 200, "MirrorMaker 2", 100),
    ]


def test_a_sample_of_which_nothing_came_is_not_taken_for_a_quick_one() -> None:
    assert replace(MANY, delays=[]).delay == math.inf


@pytest.mark.parametrize("number", ["0", "5", "15", "-10", "many"])
def test_topics_that_are_not_tens_are_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["topics", f"--topics={number}"])
    assert ended.value.code == 2
    assert f"argument --topics: expected a multiple of 10, got {number}" in capsys.readouterr().err
