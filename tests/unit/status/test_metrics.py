from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import Gap
from appliance.link.model.mirror_records import Heartbeat
from appliance.metrics import REPLICATOR, counter, gauge
from appliance.status.model.facts import Log
from appliance.status.model.metrics import exposition
from appliance.status.model.snapshot import Snapshot
from tests.support.exposition import declared, exported
from tests.support.facts import DESTINATION, NOW, SILENT, SOURCE_ID, complete, snapshot, with_logs, with_position

KEY = Partition("payments", 0)


def samples(taken: Snapshot | None, fresh: bool = True) -> dict[tuple[str, str], float]:
    """The samples by name, and those of a partition also by its number."""
    families = text_string_to_metric_families(exposition(taken, fresh).decode())
    return {
        (sample.name.removeprefix("kafka_replicator_"), sample.labels.get("partition", "")): sample.value
        for family in families
        for sample in family.samples
    }


def test_every_partition_has_its_numbers() -> None:
    found = samples(snapshot(with_logs({KEY: Log(-1, 130, 130)}), previous=snapshot(now=NOW - 20_000)))
    assert found["records_copied_total", "0"] == 90
    assert found["bytes_copied_total", "0"] == 9000
    assert found["lag_records", "0"] == 30
    assert found["lag_seconds", "0"] == 0
    assert found["lag_records", "1"] == found["lag_seconds", "1"] == 0
    assert found["stopped", "0"] == found["gaps_total", "0"] == found["held_seconds", "0"] == 0
    assert found["source_reachable", ""] == found["destination_reachable", ""] == 1
    assert found["snapshot_timestamp_seconds", ""] == NOW / 1000
    assert found["max_bytes_per_second", ""] == 0
    assert samples(snapshot(MAX_BYTES_PER_SECOND="5000"))["max_bytes_per_second", ""] == 5000


def test_a_stop_a_hold_and_a_gap_are_counted() -> None:
    source = replace(with_logs({KEY: Log(-1, 100, 130)}), holding={KEY: OpenTransaction(100, 7, "t", NOW - 61_000)})
    gap = Gap(KEY, SOURCE_ID, 10, 15, "deleted", NOW)
    destination = replace(with_position(stopped="too large", stopped_at=NOW), gaps={KEY: (gap,)})
    found = samples(snapshot(source, destination))
    assert (found["stopped", "0"], found["held_seconds", "0"], found["gaps_total", "0"]) == (1, 61, 1)


def test_an_unknown_value_has_no_sample() -> None:
    without_source = samples(snapshot(source=SILENT))
    assert without_source["source_reachable", ""] == 0
    assert without_source["records_copied_total", "0"] == 90
    assert not {name for name, _ in without_source} & {"lag_records", "lag_seconds", "held_seconds", "topic_stopped"}
    without_destination = samples(snapshot(destination=SILENT))
    assert without_destination["destination_reachable", ""] == 0
    of_partitions = {name for name, partition in without_destination if partition}
    assert of_partitions == {"held_seconds", "unknown"}


def test_a_lag_in_seconds_that_nobody_knows_has_no_sample_beside_one_in_records() -> None:
    found = samples(snapshot(with_logs({KEY: Log(-1, 101, 101)}), with_position(timestamp=-1)))
    assert found["lag_records", "0"] == 1
    assert ("lag_seconds", "0") not in found


def test_of_a_stale_snapshot_only_its_age_is_told_and_of_none_nothing() -> None:
    assert set(samples(snapshot(), fresh=False)) == {("snapshot_timestamp_seconds", "")}
    assert samples(None) == {}


def test_who_has_a_lane_is_a_label() -> None:
    text = exposition(snapshot(destination=replace(DESTINATION, owners=(None, DESTINATION.owners[0]))), True).decode()
    (line,) = [line for line in text.splitlines() if line.startswith("kafka_replicator_lane_owner")]
    assert '{host="grape-vm",lane="1",run="1a2b3c"}' in line


def test_every_metric_of_the_list_is_exported_with_its_labels() -> None:
    assert exported(exposition(complete(), True).decode()) == declared(REPLICATOR)


def test_a_metric_that_is_not_in_the_list_or_of_another_type_there_cannot_be_exported() -> None:
    with pytest.raises(KeyError):
        gauge("kafka_replicator_lag_bytes")
    with pytest.raises(KeyError, match="is a gauge"):
        counter("kafka_replicator_lag_records")


def test_a_heartbeat_has_its_time_and_how_long_one_took_where_that_was_measured() -> None:
    beaten = replace(DESTINATION, heartbeat=Heartbeat("orange", "grape", NOW - 500, 17))
    found = samples(snapshot(destination=beaten))
    assert found["heartbeat_timestamp_seconds", ""] == (NOW - 500) / 1000
    assert found["heartbeat_milliseconds", ""] == 17
    unmeasured = replace(DESTINATION, heartbeat=Heartbeat("orange", "grape", NOW))
    assert ("heartbeat_milliseconds", "") not in samples(snapshot(destination=unmeasured))
    assert not [name for name, _ in samples(snapshot()) if name.startswith("heartbeat")]
