"""The benchmark of a lane's start runs and prints the promised rows; this test proves no speed."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_start_prints_a_lanes_start_behind_many_commits_beside_few_and_markers_go_after_a_minute(
    tmp_path: Path,
) -> None:
    with bench(tmp_path, "start", "--commits", "20000", "--runs", "1", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    *taken, left = json.loads(out)["rows"]
    assert [(row["name"], row["unit"], row["peer_name"]) for row in taken] == [
        (f"{what}, markers kept {kept} s", unit, "1,000 commits")
        for kept in ("86,400", "60")
        for what in ("lane's start", "status")
        for unit in ("s", "s of processor")
    ]
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in taken)
    # A retention of a day keeps all 18,000 markers, of at least 78 bytes each, and a link's retention keeps none.
    assert left["peer"] - left["ours"] > 1.4
    assert list(tmp_path.iterdir()) == []
