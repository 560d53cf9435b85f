"""The rows of the replicate benchmark, from its trials."""

import pytest

from appliance.errors import ProcessFailed
from bench.__main__ import main
from bench.cases.replicate import Trial, Turn, costs, schedule, speeds, taken
from bench.lib.filling import Load
from bench.lib.footprint import Cost, Footprint
from bench.lib.row import Row
from bench.lib.workloads import WORKLOADS, Workload


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


def test_who_never_came_to_count_has_no_row() -> None:
    rows = speeds(Workload("events", Load(1)), {**TRIALS, "record by record": []})
    assert [row.peer_name for row in rows] == ["MirrorMaker 2"]


def test_warming_copies_come_first_and_end_with_ours_and_then_all_take_turns() -> None:
    planned = schedule(["our replicator", "MirrorMaker 2"], runs=2, warming=2, idle_seconds=30)
    assert [(turn.name, turn.counts) for turn in planned] == [
        ("MirrorMaker 2", False),
        ("our replicator", False),
        ("our replicator", False),
        *[("our replicator", True), ("MirrorMaker 2", True)] * 2,
    ]
    assert len({(turn.name, turn.run) for turn in planned}) == len(planned)
    assert [turn.counts for turn in schedule(["our replicator"], 1, warming=0, idle_seconds=0)] == [True]


async def test_a_contender_that_fails_has_no_further_turn_and_keeps_what_it_had(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taken_turns = []

    async def copy(turn: Turn) -> Trial:
        taken_turns.append((turn.name, turn.run))
        if (turn.name, turn.run) == ("MirrorMaker 2", "1"):
            raise ProcessFailed("its tasks ended")
        return Trial(len(taken_turns))

    trials = await taken(schedule(["our replicator", "MirrorMaker 2"], 3, 0, 0), copy)
    assert {name: len(each) for name, each in trials.items()} == {"our replicator": 3, "MirrorMaker 2": 1}
    assert ("MirrorMaker 2", "2") not in taken_turns
    assert [record.message for record in caplog.records] == ["left out"]


async def test_a_copy_by_ours_that_fails_ends_the_benchmark() -> None:
    async def copy(_turn: Turn) -> Trial:
        raise ProcessFailed("it ended")

    with pytest.raises(ProcessFailed, match="it ended"):
        await taken(schedule(["our replicator"], 1, 0, 0), copy)


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
