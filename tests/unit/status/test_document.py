import json
from dataclasses import replace

import pytest

from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import Gap
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.link.model.mirror_records import Heartbeat
from appliance.link.model.problems import Fault
from appliance.status.model.document import document, health
from appliance.status.model.facts import Log
from appliance.status.model.snapshot import AuditStatus
from tests.support.facts import (
    DESTINATION,
    NOW,
    SILENT,
    SOURCE_ID,
    complete,
    snapshot,
    with_logs,
    with_position,
    with_sql,
)

KEY = Partition("payments", 0)


def test_known_facts_are_there_as_json() -> None:
    read = json.loads(json.dumps(document(snapshot())))
    assert read["state"] == "copied"
    assert read["at"] == "2027-01-15T08:00:00.000Z"
    assert read["troubles"] == read["remarks"] == []
    assert read["max_bytes_per_second"] == 0
    assert read["lanes"][0]["owner"] == {
        "run": "1a2b3c",
        "worker": "worker",
        "host": "grape-vm",
        "since": "2027-01-15T07:59:00.000Z",
    }
    (topic,) = read["topics"]
    assert (topic["topic"], topic["copy"], topic["copied"], topic["lag_records"]) == (
        "payments",
        "payments.copy",
        180,
        0,
    )
    partition = topic["partitions"][0]
    assert (partition["next_offset"], partition["end_offset"], partition["copied"]) == (100, 100, 90)
    assert (partition["stopped"], partition["unknown"], partition["held"], partition["gaps"]) == (None, None, None, [])


def test_the_published_keys_are_these_in_this_order() -> None:
    # The fields of the snapshot's classes are the keys: this fails if one is renamed.
    read = json.loads(json.dumps(document(complete())))
    assert " ".join(read) == (
        "replicator at state stopped troubles problems problems_unknown remarks source destination "
        "stands_by replicators replicators_unknown standbys_wanted max_bytes_per_second heartbeat sql audit "
        "states progress lanes topics excluded groups_unknown groups"
    )
    (topic,) = read["topics"]
    assert " ".join(topic) == (
        "topic copy active state stopped remedies copied rate lag_records lag_seconds left_out partitions"
    )
    assert " ".join(topic["partitions"][0]) == (
        "partition lane next_offset end_offset copied bytes rate lag_records lag_seconds behind_since latency_ms "
        "stopped unknown remedies held gaps dropped written_by_links filtered dead_letters lost_at_source"
    )
    assert [*read["source"], *read["lanes"][0]] == ["cluster", "unknown", "lane", "owner", "held"]


def test_an_unknown_fact_is_null_with_a_time_and_a_reason() -> None:
    read = json.loads(json.dumps(document(snapshot(destination=SILENT))))
    assert read["destination"]["unknown"] == {"since": "2027-01-15T08:00:00.000Z", "reason": SILENT}
    (topic,) = read["topics"]
    partition = topic["partitions"][0]
    assert {partition[name] for name in ("copied", "bytes", "rate", "lag_records", "lag_seconds", "lane")} == {None}
    assert partition["gaps"] is None
    assert topic["copied"] is topic["rate"] is topic["lag_records"] is topic["lag_seconds"] is None


def test_a_stop_a_hold_and_a_gap_are_there_with_their_times() -> None:
    source = replace(with_logs({KEY: Log(-1, 100, 130)}), holding={KEY: OpenTransaction(100, 7, "till-3", NOW)})
    gap = Gap(KEY, SOURCE_ID, 10, -1, "made anew", NOW)
    destination = replace(with_position(stopped="too large", stopped_at=NOW), gaps={KEY: (gap,)})
    read = document(snapshot(source, destination))
    partition = json.loads(json.dumps(read))["topics"][0]["partitions"][0]
    at = "2027-01-15T08:00:00.000Z"
    assert partition["stopped"] == {"since": at, "reason": "too large"}
    assert partition["held"] == {
        "first_offset": 100,
        "producer_id": 7,
        "transactional_id": "till-3",
        "since": at,
        "waiting": 30,
    }
    assert partition["gaps"] == [{"first": 10, "next": None, "cause": "made anew", "found": at}]


def test_a_transaction_that_nobody_names_has_nulls_for_names() -> None:
    destination = replace(DESTINATION, holding={0: OpenTransaction(5, began=NOW)})
    read = json.loads(json.dumps(document(snapshot(destination=destination))))
    assert read["lanes"][0]["held"]["producer_id"] is None
    assert read["lanes"][0]["held"]["transactional_id"] is None


def test_a_heartbeat_is_there_with_how_long_one_took_or_null() -> None:
    for way in (17, None):
        beaten = replace(DESTINATION, heartbeat=Heartbeat("orange", "grape", NOW, way))
        read = json.loads(json.dumps(document(snapshot(destination=beaten))))
        assert read["heartbeat"] == {"at": "2027-01-15T08:00:00.000Z", "way_ms": way}
    assert document(snapshot())["heartbeat"] is None


@pytest.mark.parametrize("at", [10**15, -(10**17), 2**63 - 1])
def test_case_1029_a_heartbeat_of_any_time_leaves_the_status_readable(at: int) -> None:
    made = document(snapshot(destination=replace(DESTINATION, heartbeat=Heartbeat("a", "b", at))))
    assert f"{at / 1000:.0f} s" in json.dumps(made)


def test_the_sql_is_there_with_the_time_of_its_first_lane() -> None:
    assert document(snapshot())["sql"] is None
    sql = LinkSql(2, "SELECT 1")
    changes = [SqlChange(sql, "run", 3, NOW - 1000), SqlChange(sql, "later", 4, NOW)]
    assert document(snapshot(destination=with_sql(*changes)))["sql"] == {
        "number": 2,
        "digest": sql.digest,
        "text": "SELECT 1",
        "salted": False,
        "since": "2027-01-15T07:59:59.000Z",
        "run": "run",
    }
    raw = document(snapshot(destination=with_sql(*changes, SqlChange(LinkSql(3), "raw", 5, NOW))))["sql"]
    assert isinstance(raw, dict)
    assert (raw["number"], raw["digest"], raw["text"]) == (3, None, None)


def test_the_audit_table_is_there_with_its_lag_and_the_reason_that_it_is_not_written() -> None:
    assert document(snapshot())["audit"] is None
    full = AuditStatus("/audit", 61.5, Fault("no space left", NOW))
    read = document(replace(snapshot(), audit=full))
    since = "2027-01-15T08:00:00.000Z"
    expected = {"path": "/audit", "lag_seconds": 61.5, "problem": {"since": since, "reason": "no space left"}}
    assert read["audit"] == expected
    assert f"audit table: not written since {since}: no space left" in read["remarks"]


def test_a_link_that_copies_is_healthy() -> None:
    answer = {"state": "copied", "at": "2027-01-15T08:00:00.000Z", "troubles": [], "stands_by": False}
    assert health(snapshot(), NOW) == (True, answer)


def test_a_silent_cluster_and_a_stopped_partition_are_not_healthy_and_say_why() -> None:
    for status in (snapshot(source=SILENT), snapshot(destination=with_position(stopped="large", stopped_at=NOW))):
        well, answer = health(status, NOW)
        assert not well
        assert answer["troubles"]


def test_before_the_first_look_nothing_is_known() -> None:
    assert health(None, NOW) == (False, {"state": "unknown", "at": None, "troubles": ["there is no snapshot yet"]})


def test_a_snapshot_from_too_long_ago_says_nothing_about_now() -> None:
    assert health(snapshot(), NOW + 30_000)[0]
    well, answer = health(snapshot(), NOW + 30_001)
    assert not well
    assert answer["state"] == "unknown"
    assert answer["troubles"] == ["no snapshot since 2027-01-15T08:00:00.000Z"]
