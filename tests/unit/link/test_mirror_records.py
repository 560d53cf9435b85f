"""Kafka 4.3.1's own ``Checkpoint`` and ``Heartbeat`` have written the bytes on the right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body
from appliance.link.model.mirror_records import (
    Heartbeat,
    MirrorCheckpoint,
    decode_checkpoint,
    decode_heartbeat,
    encode_checkpoint,
    encode_heartbeat,
)

CHECKPOINTS = [
    (
        MirrorCheckpoint("billing-äö", Partition("orange.orders", 7), 4_300_000_017, 4_299_999_990, "host-1/2026 ✓"),
        "000c62696c6c696e672dc3a4c3b6000d6f72616e67652e6f726465727300000007",
        "000000000001004ccb1100000001004ccaf6000f686f73742d312f3230323620e29c93",
    ),
    (
        MirrorCheckpoint("g", Partition("t", 0), 0, 0),
        "00016700017400000000",
        "0000000000000000000000000000000000000000",
    ),
]
HEARTBEAT = Heartbeat("orange", "grape", 1_800_000_000_123)
HEARTBEAT_KEY, HEARTBEAT_VALUE = bytes.fromhex("00066f72616e676500056772617065"), bytes.fromhex("0000000001a3185c507b")

NAMES = st.text(st.characters(codec="utf-8"), max_size=300)
OFFSETS = st.integers(0, 2**63 - 1)


@pytest.mark.parametrize(("checkpoint", "key", "value"), CHECKPOINTS)
def test_a_checkpoint_has_the_bytes_of_kafkas_own(checkpoint: MirrorCheckpoint, key: str, value: str) -> None:
    record = Record(0, 5, body(bytes.fromhex(key), bytes.fromhex(value)))
    assert encode_checkpoint(checkpoint, 5) == record
    assert decode_checkpoint(record) == checkpoint


def test_a_heartbeat_has_the_bytes_of_kafkas_own() -> None:
    record = Record(0, HEARTBEAT.at, body(HEARTBEAT_KEY, HEARTBEAT_VALUE))
    assert encode_heartbeat(HEARTBEAT) == record
    assert decode_heartbeat(record) == HEARTBEAT


def test_how_long_a_heartbeat_took_is_told_by_a_header_of_the_next() -> None:
    measured = Heartbeat("orange", "grape", 1_800_000_000_123, 17)
    record = encode_heartbeat(measured)
    assert record.body == body(HEARTBEAT_KEY, HEARTBEAT_VALUE, [("way_ms", b"17")])
    assert decode_heartbeat(record) == measured


@pytest.mark.parametrize("way", [b"9" * 400, b"1_0", b"-5", b"", b"\xff"])
def test_case_1062_how_long_a_heartbeat_took_is_unknown_where_the_header_is_no_number(way: bytes) -> None:
    # A number of 400 digits, written by anybody to the heartbeats, ended the page of the link, and the metrics.
    made = Record(0, HEARTBEAT.at, body(HEARTBEAT_KEY, HEARTBEAT_VALUE, [("way_ms", way)]))
    assert decode_heartbeat(made) == HEARTBEAT


@given(NAMES, NAMES, st.integers(0, 2**31 - 1), OFFSETS, OFFSETS, NAMES)
def test_a_checkpoint_comes_back_as_it_was(
    group: str, topic: str, partition: int, upstream: int, downstream: int, metadata: str
) -> None:
    checkpoint = MirrorCheckpoint(group, Partition(topic, partition), upstream, downstream, metadata)
    assert decode_checkpoint(encode_checkpoint(checkpoint, 1)) == checkpoint


def test_metadata_for_which_the_format_has_no_room_are_left_out() -> None:
    fits, does_not = (MirrorCheckpoint("g", Partition("t", 0), 1, 2, "é" * count) for count in (2**14 - 1, 2**14))
    assert decode_checkpoint(encode_checkpoint(fits, 1)) == fits
    assert decode_checkpoint(encode_checkpoint(does_not, 1)).metadata == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (HEARTBEAT_KEY, None),
        (None, HEARTBEAT_VALUE),
        (HEARTBEAT_KEY[:-1], HEARTBEAT_VALUE),
        (HEARTBEAT_KEY, HEARTBEAT_VALUE[:-1]),
        (HEARTBEAT_KEY, b"\x00\x01" + HEARTBEAT_VALUE[2:]),
        (b"\xff\xff", HEARTBEAT_VALUE),
        (b"\x00\x01\xff\x00\x00", HEARTBEAT_VALUE),
    ],
)
def test_a_record_that_is_no_heartbeat_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(PeerError, match="no heartbeat of MirrorMaker 2 at offset 3"):
        decode_heartbeat(Record(3, 1, body(key, value)))


@pytest.mark.parametrize("cut", [(1, 0), (0, 1), (5, 0), (0, 20)])
def test_a_record_that_is_no_checkpoint_is_refused(cut: tuple[int, int]) -> None:
    _, key, value = CHECKPOINTS[0]
    shorter = [bytes.fromhex(text)[: len(text) // 2 - less] for text, less in zip((key, value), cut, strict=True)]
    with pytest.raises(PeerError, match="no checkpoint of MirrorMaker 2 at offset 3"):
        decode_checkpoint(Record(3, 1, body(*shorter)))
