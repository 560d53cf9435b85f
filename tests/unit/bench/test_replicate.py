"""From the trials to the rows."""

import pytest

from bench.__main__ import main
from bench.filling import Load
from bench.footprint import Cost, Footprint
from bench.replicate import Trial, costs, speeds
from bench.row import Row
from bench.workloads import WORKLOADS, Workload


def trial(rate: float, java: Cost, others: Cost) -> Trial:
    return Trial(rate, Footprint(java, others))


OURS = [
    trial(900_000, java=Cost(300, 1), others=Cost(250, 2)),
    trial(1_100_000, java=Cost(310, 1), others=Cost(230, 3)),
    trial(1_000_000, java=Cost(300, 1), others=Cost(240, 1)),
]
THEIRS = [trial(rate, java=Cost(1000, 4), others=Cost(0, 0)) for rate in (100_000, 200_000, 150_000)]
TRIALS = {"our replicator": OURS, "MirrorMaker 2": THEIRS, "record by record": [Trial(90_000.0)]}


def test_rates_are_medians_beside_each_contender_and_what_is_asked_for() -> None:
    workload = Workload("events", Load(1), goals={"MirrorMaker 2": 12.0})
    assert speeds(workload, TRIALS) == [
        Row("events", "records/s", 1_000_000, "MirrorMaker 2", 150_000, 12.0),
        Row("events", "records/s", 1_000_000, "record by record", 90_000),
    ]


def test_costs_are_the_highest() -> None:
    assert costs(TRIALS) == [
        Row("memory of Python", "MB", 250, "limit", 300),
        Row("idle Python", "% of a core", 3, "limit", 5),
        Row("memory with Java", "MB", 550, "MirrorMaker 2", 1000),
    ]


def test_where_nobody_was_left_idle_there_are_no_costs() -> None:
    assert costs({name: [Trial(each.rate) for each in trials] for name, trials in TRIALS.items()}) == []


def test_without_the_peer_its_memory_is_not_compared() -> None:
    assert [row.peer_name for row in costs({"our replicator": OURS})] == ["limit", "limit"]


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_a_goal_is_set_only_against_who_takes_part(workload: Workload) -> None:
    assert workload.goals.keys() <= set(workload.against)
    assert "MirrorMaker 2" in workload.goals


@pytest.mark.parametrize("option", ["--records", "--runs"])
@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_less_than_one_record_or_run_is_refused(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replicate", f"{option}={number}"])
    assert ended.value.code == 2
    assert f"argument {option}: expected a whole number from 1 on, got {number}" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--workload", "--against"])
def test_an_unknown_workload_or_contender_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replicate", option, "other"])
    assert ended.value.code == 2
    assert f"argument {option}: invalid choice: 'other'" in capsys.readouterr().err
