"""The benchmark of many topics runs and prints the promised rows; this test proves no speed."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_topics_prints_our_figures_beside_the_limits_and_beside_few(tmp_path: Path) -> None:
    with bench(tmp_path, "topics", "--topics", "20", "--seconds", "1", "--alone", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["name"], row["peer_name"]) for row in rows] == [
        ("a new topic", "limit"),
        ("memory of Python", "limit"),
        ("start-up", "2 topics"),
        ("idle Python", "2 topics"),
        ("busy Python", "2 topics"),
        ("delay under load", "2 topics"),
    ]
    assert all(row.keys() == {"name", "unit", "ours", "peer_name", "peer", "ratio", "goal"} for row in rows)
    assert list(tmp_path.iterdir()) == []
