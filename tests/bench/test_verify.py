"""The benchmark of verifications runs, prints the promised rows and leaves nothing behind."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_verify_prints_every_way_beside_one_process(tmp_path: Path) -> None:
    with bench(tmp_path, "verify", "--records", "20000", "--runs", "1", "--warming", "0", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    ways = ("1 task", "2 tasks", "1 worker", "2 workers")
    assert [row["name"] for row in rows] == [
        f"verify {shape}: {way}" for shape in ("four partitions", "one partition") for way in ways
    ]
    assert {row["peer_name"] for row in rows} == {"one process"}
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in rows)
    assert list(tmp_path.iterdir()) == []
