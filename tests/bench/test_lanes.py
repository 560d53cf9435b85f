"""The benchmark of lanes runs, prints the promised rows and leaves nothing behind."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_lanes_prints_every_way_the_drivers_cost_and_the_stall(tmp_path: Path) -> None:
    grid = "--lanes", "2", "4", "--executors", "1", "2"
    with bench(tmp_path, "lanes", *grid, "--records", "20000", "--topics", "10", "--seconds", "1", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert [row["name"] for row in rows] == [
        "speed of 2 lanes, 2 executors",
        "speed of 4 lanes, 1 executor",
        "speed of 4 lanes, 2 executors",
        "speed of 4 lanes, 2 executors, by load",
        "memory of the driver",
        "driver, idle",
        "nothing copied while lanes change",
    ]
    assert all(row["ours"] > 0 for row in rows if row["name"] != "driver, idle")
    assert list(tmp_path.iterdir()) == []
