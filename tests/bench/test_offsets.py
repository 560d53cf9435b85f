"""The benchmark of translated offsets runs, prints what it promises and leaves nothing behind."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_offsets_prints_our_errors_beside_the_peers(tmp_path: Path) -> None:
    with bench(tmp_path, "offsets", "--groups", "3", "--records", "10000", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    exact, missing, again, most, missed = json.loads(out)["rows"]
    assert [row["name"] for row in (exact, missing)] == ["exact of 72", "missing of 72"]
    assert [row["name"] for row in (again, most, missed)] == ["read again", "read again, most of an offset", "missed"]
    assert {row["peer_name"] for row in (exact, missing, again, most, missed)} == {"MirrorMaker 2"}
    assert exact["ours"] + missing["ours"] <= 72
    assert list(tmp_path.iterdir()) == []
