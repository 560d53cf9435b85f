"""The benchmark of SQL in flight runs, prints the promised rows and leaves nothing behind; this proves no speed."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_transform_prints_rates_costs_and_latency_beside_the_peers_and_no_sql(tmp_path: Path) -> None:
    copies = ["--records", "20000", "--warming", "0", "--runs", "1"]
    # With exactly once, its tasks end by themselves in some copies.
    against = ["--against", "mirror-maker", "no-sql"]
    steady = ["--rate", "200", "--seconds", "4", "--latency-warming", "1"]
    with bench(tmp_path, "transform", *copies, *against, *steady, "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    copied = "500-byte records, half left out, a field masked"
    assert [(row["name"], row["peer_name"]) for row in rows] == [
        (copied, "MirrorMaker 2"),
        (copied, "our replicator, no SQL"),
        ("Java, for a million records", "MirrorMaker 2"),
        ("memory of Java", "MirrorMaker 2"),
        ("Java, for a million records", "our replicator, no SQL"),
        ("memory of Java", "our replicator, no SQL"),
        ("Python, for a million records", "our replicator, no SQL"),
        ("memory of Python", "our replicator, no SQL"),
        ("latency p50 at 200/s", "our replicator, no SQL"),
        ("latency p99 at 200/s", "our replicator, no SQL"),
        ("latency max at 200/s", "our replicator, no SQL"),
        ("latency p99 at 200/s", "limit"),
    ]
    assert all(row["ours"] > 0 for row in rows if row["unit"] != "s of processor")
    assert list(tmp_path.iterdir()) == []
