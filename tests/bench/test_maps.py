"""The benchmark of the maps' growth counts the same on real topics as in its model, and leaves nothing behind."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_maps_on_real_topics_keep_what_the_model_says(tmp_path: Path) -> None:
    options = "--writes", "6", "--partitions", "100", "--real-partitions", "4", "--real-writes", "40"
    with bench(tmp_path, "maps", *options, "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = {row["name"]: row for row in json.loads(out)["rows"]}
    assert [row["peer_name"] for row in rows.values()] == ["limit", "copied"] * 2 + ["model"] * 2
    kept = rows["40 transactions in each of 4 partitions: kept a partition"]
    assert 0.5 < kept["ratio"] < 2
    assert list(tmp_path.iterdir()) == []
