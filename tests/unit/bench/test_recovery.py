import pytest

from appliance.errors import ProcessFailed
from bench.cases.recovery import busiest_worker, hand_over_rows, rows
from bench.lib.handing_over import KILL, STOP, handed_over
from bench.lib.procfs import Process
from bench.lib.row import LIMIT
from bench.lib.workloads import MIRROR_MAKER, OURS

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


def test_a_hand_over_ends_with_the_longest_pause_since_the_signal() -> None:
    assert handed_over([0.0, 9.0, 10.1, 10.2, 19.0, 19.1], begun=10.0) == 9.0
    assert handed_over([9.9, 10.3, 11.0, 12.5, 12.6], begun=10.0) == 2.5


def test_a_pause_before_the_signal_counts_from_the_signal_on() -> None:
    assert handed_over([2.0, 10.5, 10.6], begun=10.0) == 0.5


def test_the_median_and_the_longest_hand_over_stand_beside_the_peers_and_the_longest_beside_the_limit() -> None:
    ours = {KILL: [9.0, 12.0, 10.0], STOP: [1.0, 2.0, 1.5]}
    found = hand_over_rows({OURS: ours, MIRROR_MAKER: {KILL: [11.0, 13.0, 12.0], STOP: [3.0, 4.0, 3.0]}})
    assert [(row.name, row.ours, row.peer_name, row.peer) for row in found] == [
        ("hand-over after SIGKILL, p50", 10.0, MIRROR_MAKER, 12.0),
        ("hand-over after SIGKILL, max", 12.0, MIRROR_MAKER, 13.0),
        ("hand-over after SIGKILL, max", 12.0, LIMIT, 15.0),
        ("hand-over after SIGTERM, p50", 1.5, MIRROR_MAKER, 3.0),
        ("hand-over after SIGTERM, max", 2.0, MIRROR_MAKER, 4.0),
        ("hand-over after SIGTERM, max", 2.0, LIMIT, 3.0),
    ]


def test_without_hand_overs_there_is_no_row_of_them() -> None:
    assert hand_over_rows({}) == []
