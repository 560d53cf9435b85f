"""The tunnel's benchmark runs beside stunnel and prints the promised rows; this test proves no speed."""

from pathlib import Path

import pytest

from tests.support.bench import named, rows_of


@pytest.mark.release
def test_tunnel_prints_our_figures_beside_the_peers(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "tunnel", "--rounds", "1", "--seconds", "0.2", "--connections", "20")
    assert named(rows) == [
        ("one stream", "stunnel"),
        ("one stream", "direct"),
        ("8 streams", "stunnel"),
        ("8 streams", "direct"),
        ("new connections", "stunnel"),
        ("new connections", "direct"),
        ("added latency p50", "stunnel"),
        ("added latency p99", "stunnel"),
        ("p99 beside strangers", "stunnel"),
        ("p99 beside strangers", "limit"),
        ("a stranger's hello", "stunnel"),
        ("a stranger's hello", "limit"),
        ("idle connection, destination", "stunnel"),
        ("idle connection, source", "stunnel"),
        ("idle connection, more expensive side", "limit"),
    ]
    assert all(row["ours"] > 0 for row in rows if "latency" not in row["name"])
