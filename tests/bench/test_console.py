"""The benchmark of the control center runs and prints the promised rows; this test proves no figure."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_console_prints_the_cost_of_viewers_of_idleness_and_of_many_partitions(tmp_path: Path) -> None:
    options = ["--records", "20000", "--warming", "0", "--runs", "1", "--viewers", "3", "--topics", "3"]
    with bench(tmp_path, "console", *options, "--seconds", "1", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["name"], row["peer_name"]) for row in rows] == [
        ("rate beside viewers", "without viewers"),
        ("idle control center", "limit"),
        ("memory of it", "limit"),
        ("slowest page of many partitions", "limit"),
        ("largest page", "limit"),
    ]
    assert all(row["ours"] > 0 for row in rows if row["name"] != "idle control center")
    assert list(tmp_path.iterdir()) == []
