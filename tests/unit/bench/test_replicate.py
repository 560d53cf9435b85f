"""From the trials to the rows."""

import pytest

from bench.__main__ import main
from bench.footprint import Cost, Footprint
from bench.replicate import Trial, rows
from bench.row import Row


def trial(rate: float, java: Cost, others: Cost) -> Trial:
    return Trial(rate, Footprint(java, others))


OURS = [
    trial(900_000, java=Cost(300, 1), others=Cost(250, 2)),
    trial(1_100_000, java=Cost(310, 1), others=Cost(230, 3)),
    trial(1_000_000, java=Cost(300, 1), others=Cost(240, 1)),
]
THEIRS = [trial(rate, java=Cost(1000, 4), others=Cost(0, 0)) for rate in (100_000, 200_000, 150_000)]


def test_rates_are_medians_and_costs_the_highest() -> None:
    assert rows(OURS, THEIRS) == [
        Row("speed", "records/s", 1_000_000, "MirrorMaker 2", 150_000),
        Row("memory of Python", "MB", 250, "limit", 300),
        Row("idle Python", "% of a core", 3, "limit", 5),
        Row("memory with Java", "MB", 550, "MirrorMaker 2", 1000),
    ]


@pytest.mark.parametrize("option", ["--records", "--runs"])
@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_less_than_one_record_or_run_is_refused(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replicate", f"{option}={number}"])
    assert ended.value.code == 2
    assert f"argument {option}: expected a whole number from 1 on, got {number}" in capsys.readouterr().err
