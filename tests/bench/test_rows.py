"""Each benchmark runs, prints the promised rows and leaves nothing behind; these tests prove no speed."""

from pathlib import Path

import pytest

from tests.support.bench import named, rows_of

pytestmark = pytest.mark.release

ONE_RUN = ("--runs", "1")


def test_small_batches_transactions_and_compacted_topics_are_made_and_copied_whole(tmp_path: Path) -> None:
    workloads = ["--workload", "fours", "transactions", "compacted", "--against", "record-by-record"]
    rows = rows_of(tmp_path, "replicate", *workloads, "--records", "10000", "--warming", "0", *ONE_RUN)
    assert [row["name"] for row in rows] == [
        "batches of 4 records",
        "transactions, 20 % aborted",
        "compacted, with holes",
    ]


def test_recovery_prints_our_figures_beside_the_limits(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "recovery", *ONE_RUN, "--hand-overs", "0")
    assert [(row["name"].rpartition(" ")[2], row["unit"], row["peer_name"]) for row in rows] == [
        ("replicator", "s", "limit"),
        ("worker", "s", "limit"),
    ]
    assert all(row["ours"] > 0 for row in rows)


def test_recovery_prints_hand_overs_beside_a_connect_clusters_and_the_limits(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "recovery", "--runs", "0", "--hand-overs", "1", "--as-installed", "0")
    assert named(rows) == [
        (f"hand-over after {name}, {figure}", peer)
        for name in ("SIGKILL", "SIGTERM")
        for figure, peer in (("p50", "MirrorMaker 2"), ("max", "MirrorMaker 2"), ("max", "limit"))
    ]
    assert all(row["unit"] == "s" and row["ours"] > 0 and row["peer"] > 0 for row in rows)


def test_lanes_prints_every_way_the_drivers_cost_and_the_stall(tmp_path: Path) -> None:
    grid = "--lanes", "2", "4", "--executors", "1", "2"
    rows = rows_of(tmp_path, "lanes", *grid, "--records", "20000", "--topics", "10", "--seconds", "1")
    assert [row["name"] for row in rows] == [
        "speed of 2 lanes, 2 executors",
        "speed of 4 lanes, 1 executor",
        "speed of 4 lanes, 2 executors",
        "speed of 4 lanes, 2 executors, by load",
        "memory of the driver",
        "driver, idle",
        "nothing copied while lanes change",
    ]
    assert all(row["ours"] > 0 for row in rows if row["name"] != "driver, idle")


def test_offsets_prints_our_errors_beside_the_peers(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "offsets", "--groups", "3", "--records", "10000")
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


def test_wan_prints_our_figures_beside_the_peers_and_the_lines(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "wan", "--partitions", "2", "--records", "50000", *ONE_RUN, "--round-trip", "40")
    peers = ("MirrorMaker 2", "MirrorMaker 2, tuned for it", "the line")
    assert named(rows) == [("2 partitions by a long line", peer) for peer in peers]
    assert all(row["unit"] == "MB/s" and row["ours"] > 0 and row["peer"] > 0 for row in rows)


def test_latency_prints_our_figures_beside_the_peers_and_the_limits(tmp_path: Path) -> None:
    times = ["--brokers-warming", "2", "--warming", "1", "--seconds", "4"]
    rows = rows_of(tmp_path, "latency", "--rates", "200", *ONE_RUN, *times)
    assert named(rows) == [
        ("latency p50 at 200/s", "MirrorMaker 2"),
        ("latency p99 at 200/s", "MirrorMaker 2"),
        ("latency max at 200/s", "MirrorMaker 2"),
        ("latency p99 at 200/s", "limit"),
    ]
    assert all(row["unit"] == "ms" and row["ours"] > 0 and row["peer"] > 0 for row in rows)


def test_topics_prints_our_figures_beside_the_limits_and_beside_few(tmp_path: Path) -> None:
    assert named(rows_of(tmp_path, "topics", "--topics", "20", "--seconds", "1", "--alone")) == [
        ("a new topic", "limit"),
        ("memory of Python", "limit"),
        ("start-up", "2 topics"),
        ("idle Python", "2 topics"),
        ("busy Python", "2 topics"),
        ("delay under load", "2 topics"),
    ]


def test_transform_prints_rates_costs_and_latency_beside_the_peers_and_no_sql(tmp_path: Path) -> None:
    copies = ["--records", "20000", "--warming", "0", *ONE_RUN]
    # With exactly once, MirrorMaker 2's tasks end by themselves in some copies.
    against = ["--against", "mirror-maker", "no-sql"]
    steady = ["--rate", "200", "--seconds", "4", "--latency-warming", "1"]
    rows = rows_of(tmp_path, "transform", *copies, *against, *steady)
    copied = "500-byte records, half left out, a field masked"
    assert named(rows) == [
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


def test_verify_prints_every_way_beside_one_process(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "verify", "--records", "20000", "--sql-records", "20000", *ONE_RUN, "--warming", "0")
    in_tasks, on_workers = ("1 task", "2 tasks"), ("1 worker", "2 workers")
    ways = {"four partitions": in_tasks + on_workers, "one partition": in_tasks + on_workers, "SQL": in_tasks}
    assert named(rows) == [(f"verify {shape}: {way}", "one process") for shape in ways for way in ways[shape]]
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in rows)
