"""The benchmark of copying, its picture, its end by a signal, and what it counts."""

import json
import signal
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from bench.lib.counting import count
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan
from tests.support.administration import make_topic
from tests.support.bench import DEADLINE, bench
from tests.support.patience import PATIENCE


def test_replicate_prints_our_figures_beside_each_peers_and_draws_them(tmp_path: Path) -> None:
    temporary, picture = tmp_path / "temporary", tmp_path / "picture.png"
    temporary.mkdir()
    # Other benchmarks test MirrorMaker 2. With exactly once, its tasks end by themselves in some copies.
    against = ["--against", "record-by-record", "limit"]
    options = ["--records", "20000", "--warming", "0", "--runs", "1", "--idle-seconds", "1"]
    with bench(temporary, "replicate", *against, *options, "--json", "--plot", str(picture)) as process:
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    result = json.loads(out)
    assert [(row["name"], row["peer_name"]) for row in result["rows"]] == [
        ("500-byte records, lz4", "record by record"),
        ("500-byte records, lz4", "fetch + produce alone"),
        ("memory of Python", "limit"),
        ("idle Python", "limit"),
    ]
    keys = {"name", "unit", "ours", "peer_name", "peer", "ratio", "goal"}
    assert all(row.keys() == keys for row in result["rows"])
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in result["rows"] if row["name"] != "idle Python")
    assert result["setup"].keys() == {"command", "machine", "versions", "Java", "brokers"}
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(temporary.iterdir()) == []


def test_a_machine_without_stunnel_is_told_the_package(tmp_path: Path) -> None:
    with bench(tmp_path, "tunnel", PATH="") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err == "bench tunnel: stunnel is missing: install Debian's package stunnel4\n"


@pytest.mark.release  # held by tests/real/testbed/test_process.py, and with a whole link by tests/start/test_demo.py
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_benchmark_leaves_no_process_and_no_file(tmp_path: Path, number: signal.Signals) -> None:
    with bench(tmp_path, "replicate", "--records", "20000") as process:
        assert process.stderr is not None
        next(line for line in process.stderr if "topic filled" in line)
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert len(started) >= 2
    assert psutil.wait_procs(started, timeout=PATIENCE)[1] == []
    assert list(tmp_path.iterdir()) == []


async def test_aborted_records_and_transaction_markers_are_not_counted(tmp_path: Path) -> None:
    async with Cluster(ClusterPlan.plain("counted", address="127.0.23.1"), tmp_path) as cluster:
        client = cluster.client_configuration()
        make_topic(cluster, NewTopic("some", 2, 1))
        producer = Producer({**client, "transactional.id": "one"})
        producer.init_transactions(PATIENCE)
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for number in range(10):
                producer.produce("some", b"value", partition=number % 2)
            end(PATIENCE)
        assert await count(cluster, "some", partitions=2) == 20
