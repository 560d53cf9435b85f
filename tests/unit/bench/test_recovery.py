import pytest

from appliance.errors import ProcessFailed
from bench.cases.recovery import busiest_worker, rows
from bench.lib.procfs import Process

DRIVER = Process(10, 1, "python", 50.0)
JAVA = Process(11, 10, "java", 40.0)
DAEMON = Process(12, 11, "python", 30.0)


def test_the_worker_that_is_killed_is_the_one_that_has_copied_most() -> None:
    workers = [Process(13, 12, "python", 0.1), Process(14, 12, "python", 2.0), Process(15, 12, "python", 1.0)]
    assert busiest_worker([DRIVER, JAVA, DAEMON, *workers]) == 14


def test_without_a_worker_there_is_nobody_to_kill() -> None:
    with pytest.raises(ProcessFailed, match="no Python worker"):
        busiest_worker([DRIVER, JAVA, DAEMON])


def test_the_median_stands_beside_the_limit() -> None:
    replicator, worker = rows([4.0, 9.0, 5.0], [0.3, 0.2, 2.0])
    assert (replicator.ours, replicator.peer_name, replicator.peer) == (5.0, "limit", 10.0)
    assert (worker.ours, worker.peer_name, worker.peer) == (0.3, "limit", 3.0)
