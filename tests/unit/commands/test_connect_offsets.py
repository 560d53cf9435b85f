"""The offsets topic of Kafka Connect, as MirrorMaker 2 writes it."""

import json

import pytest

from appliance.commands.adoption.model.connect_offsets import ConnectOffsets
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body


def record(connector: str, cluster: str, topic: str, partition: int, offset: int | None) -> Record:
    key = json.dumps([connector, {"cluster": cluster, "partition": partition, "topic": topic}])
    value = None if offset is None else json.dumps({"offset": offset}).encode()
    return Record(0, 0, body(key.encode(), value))


def test_the_newest_of_each_partition_counts_and_none_of_another_cluster() -> None:
    offsets = ConnectOffsets("orange")
    for each in (
        record("MirrorSourceConnector", "orange", "orders", 0, 41),
        record("MirrorSourceConnector", "orange", "orders", 0, 57),
        record("MirrorSourceConnector", "orange", "orders", 1, 5),
        record("MirrorSourceConnector", "orange", "orders", 1, None),
        record("MirrorSourceConnector", "lime", "orders", 2, 99),
    ):
        offsets.add(each)
    assert offsets.following == {Partition("orders", 0): 58}


def test_of_several_connectors_the_lowest_counts_or_that_of_the_chosen_one() -> None:
    both, one = ConnectOffsets("orange"), ConnectOffsets("orange", "new")
    for each in (record("old", "orange", "orders", 0, 41), record("new", "orange", "orders", 0, 57)):
        both.add(each)
        one.add(each)
    assert both.following == {Partition("orders", 0): 42}
    assert one.following == {Partition("orders", 0): 58}


def test_records_of_other_connectors_are_ignored() -> None:
    offsets = ConnectOffsets("orange")
    for key in (b'["heartbeat",{"sourceClusterAlias":"orange","targetClusterAlias":"grape"}]', b"[]", b"\xff", None):
        offsets.add(Record(0, 0, body(key, b'{"offset":1}')))
    offsets.add(Record(0, 0, body(b'["file",{"filename":"x"}]', b'{"position":7}')))
    assert not offsets.following


@pytest.mark.parametrize("place", ["5", "null", "[" * 50_000, '{"cluster":"orange","partition":1e999,"topic":"t"}'])
def test_case_1063_a_key_of_another_form_is_ignored_as_another_connectors(place: str) -> None:
    # Before, an adoption ended with AttributeError, RecursionError or OverflowError.
    offsets = ConnectOffsets("orange")
    offsets.add(Record(0, 0, body(f'["source",{place}]'.encode(), b'{"offset":1}')))
    assert not offsets.following
