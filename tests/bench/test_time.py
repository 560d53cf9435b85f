"""The benchmarks of latency and a long line run, print the promised rows and leave nothing behind."""

import json
from pathlib import Path

import pytest

from tests.support.bench import DEADLINE, bench

pytestmark = pytest.mark.release


def test_wan_prints_our_figures_beside_the_peers_and_the_lines(tmp_path: Path) -> None:
    options = ["--partitions", "2", "--records", "50000", "--runs", "1", "--round-trip", "40", "--json"]
    with bench(tmp_path, "wan", *options) as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["name"], row["unit"], row["peer_name"]) for row in rows] == [
        ("2 partitions by a long line", "MB/s", "MirrorMaker 2"),
        ("2 partitions by a long line", "MB/s", "MirrorMaker 2, tuned for it"),
        ("2 partitions by a long line", "MB/s", "the line"),
    ]
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in rows)
    assert list(tmp_path.iterdir()) == []


def test_latency_prints_our_figures_beside_the_peers_and_the_limits(tmp_path: Path) -> None:
    times = ["--brokers-warming", "2", "--warming", "1", "--seconds", "4"]
    with bench(tmp_path, "latency", "--rates", "200", "--runs", "1", *times, "--json") as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["name"], row["unit"], row["peer_name"]) for row in rows] == [
        ("latency p50 at 200/s", "ms", "MirrorMaker 2"),
        ("latency p99 at 200/s", "ms", "MirrorMaker 2"),
        ("latency max at 200/s", "ms", "MirrorMaker 2"),
        ("latency p99 at 200/s", "ms", "limit"),
    ]
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in rows)
    assert list(tmp_path.iterdir()) == []
