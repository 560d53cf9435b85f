"""The benchmark of lanes runs, prints the promised rows and leaves nothing behind."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_lanes_prints_every_way_the_drivers_cost_and_the_stall(tmp_path: Path) -> None:
    with bench(tmp_path, "lanes", "--records", "20000", "--topics", "10", "--seconds", "1", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    grid = [f"{lanes} lanes, {n} executor{'s' * (n > 1)}" for lanes in (2, 4, 8) for n in (1, 2, 4)]
    assert [row["name"] for row in rows] == [
        *(f"speed of {each}" for each in grid[1:]),
        "speed of 4 lanes, 4 executors, by load",
        "memory of the driver",
        "driver, idle",
        "nothing copied while lanes change",
    ]
    assert all(row["ours"] > 0 for row in rows if row["name"] != "driver, idle")
    assert list(tmp_path.iterdir()) == []
