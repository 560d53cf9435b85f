from dataclasses import replace

from appliance.console.model.history import HOUR_MS, History
from appliance.kafka.protocol.metadata import Partition
from appliance.status.model.facts import Log
from tests.support.facts import NOW, SILENT, snapshot, with_logs, with_position


def test_rates_come_from_two_snapshots_and_are_unknown_before() -> None:
    history = History()
    before = snapshot()
    history.add(before)
    assert history.newest is not None
    assert (history.newest.records, history.newest.bytes) == (None, None)
    after = snapshot(destination=with_position(records=110, bytes=11_000), previous=before, now=NOW + 2000)
    history.add(after)
    assert (history.newest.records, history.newest.bytes) == (10, 1000)


def test_what_a_silent_cluster_hides_is_a_hole_and_no_zero() -> None:
    history = History()
    history.add(snapshot(SILENT, previous=snapshot()))
    assert history.newest is not None
    assert (history.newest.lag_records, history.newest.lag_seconds) == (None, None)
    history.add(snapshot(with_logs({Partition("payments", 0): Log(-1, 130, 130)}), previous=snapshot(now=NOW - 2000)))
    assert (history.newest.lag_records, history.newest.lag_seconds) == (30, 0)
    assert history.columns()["lag_records"] == [None, 30]


def test_what_is_older_than_an_hour_is_forgotten() -> None:
    history = History()
    for passed in (0, HOUR_MS // 2, HOUR_MS + 1):
        history.add(replace(snapshot(), at=NOW + passed))
    assert history.columns()["at"] == [(NOW + HOUR_MS // 2) / 1000, (NOW + HOUR_MS + 1) / 1000]


def test_latency_is_the_median_of_the_partitions_that_copied_something() -> None:
    history, before = History(), snapshot()
    copied = with_position(records=91, timestamp=NOW + 1000)
    history.add(
        snapshot(destination=replace(copied, committed_at={Partition("payments", 0): NOW + 1040}), previous=before)
    )
    assert history.newest is not None
    assert history.newest.latency_ms == 40


def test_case_282_samples_of_a_clock_that_was_set_back_are_forgotten() -> None:
    history = History()
    for at in (NOW, NOW + 60_000, NOW + 1000):
        history.add(snapshot(now=at))
    assert history.columns()["at"] == [NOW / 1000, NOW / 1000 + 1]
