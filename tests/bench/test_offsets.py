"""The benchmark of translated offsets runs, prints the promised rows and leaves nothing behind."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_offsets_prints_our_errors_beside_the_peers(tmp_path: Path) -> None:
    with bench(tmp_path, "offsets", "--groups", "3", "--records", "10000", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["name"], row["unit"]) for row in rows] == [
        (f"{place}: {name}", unit)
        for place, count in (("anywhere", 48), ("near the end", 24))
        for name, unit in (
            (f"exact of {count}", "offsets"),
            (f"missing of {count}", "offsets"),
            ("read again", "records"),
            ("read again, at most", "records"),
            ("missed", "records"),
        )
    ]
    assert {row["peer_name"] for row in rows} == {"MirrorMaker 2"}
    assert list(tmp_path.iterdir()) == []
