"""The benchmark of Spark's tasks runs, prints the promised rows and leaves nothing behind."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_spark_prints_every_way_beside_two_tasks(tmp_path: Path) -> None:
    with bench(tmp_path, "spark", "--records", "20000", "--runs", "1", "--warming", "0", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert [row["name"] for row in rows] == ["speed of 1 task", "speed of 4 tasks", "speed of cluster"]
    assert {row["peer_name"] for row in rows} == {"2 tasks, local mode"}
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in rows)
    assert list(tmp_path.iterdir()) == []
