import gzip
import struct
import zlib

import cramjam
import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import split
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.outgoing import outgoing
from appliance.kafka.records.records import key_and_value, unpack

NOW = 1_700_000_000_000


def message_set(magic: int, codec: int, base: int = 100) -> bytes:
    """Three messages of an old client, stored at ``base`` by an old broker."""
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=2**20)
    for number in range(3):
        # in a compressed message, offsets of magic 0 are the log's, and offsets of magic 1 count from 0 (KIP-31)
        builder.append(
            number + base * (magic == 0),
            timestamp=NOW + number,
            key=b"key",
            value=None if number == 1 else b"value %d" % number,
        )
    data = bytearray(builder.build())
    if codec:
        struct.pack_into(">q", data, 0, base + 2)
        return bytes(data)
    at = 0
    for number in range(3):
        struct.pack_into(">q", data, at, base + number)
        at += 12 + struct.unpack_from(">i", data, at + 8)[0]
    return bytes(data)


@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)])
def test_old_messages_become_batches_record_for_record(magic: int, codec: int) -> None:
    batches = list(split(message_set(magic, codec), convert))
    records = [record for batch in batches for record in unpack(batch, 0)]
    assert [key_and_value(record.body) for record in records] == [
        (b"key", b"value 0"),
        (b"key", None),
        (b"key", b"value 2"),
    ]
    assert [record.timestamp for record in records] == ([-1] * 3 if magic == 0 else [NOW, NOW + 1, NOW + 2])
    assert [record.offset for record in records] == [100, 101, 102]
    assert sum(out.records for out in outgoing(batches, 0)) == 3


def frame_of(inside: bytes, checksum_off_by: int = 0) -> bytes:
    """The LZ4 frame of a message set, with another checksum of its header."""
    frame = bytearray(bytes(cramjam.lz4.compress(inside)))
    at = 14 if frame[4] & 0x08 else 6
    frame[at] = (frame[at] + checksum_off_by) % 256
    return bytes(frame)


def message_of_magic_0(frame: bytes) -> bytes:
    """A message of magic 0 at offset 102 with this LZ4 frame, as a client of Kafka 0.9 writes it."""
    after_crc = struct.pack(">bbii", 0, 3, -1, len(frame)) + frame
    return struct.pack(">qiI", 102, len(after_crc) + 4, zlib.crc32(after_crc)) + after_crc


@pytest.mark.parametrize("checksum_off_by", [0, 1, 200])
def test_case_835_lz4_of_magic_0_is_read_whatever_the_checksum_of_its_header(checksum_off_by: int) -> None:
    # Before, a partition with a record of Kafka 0.9 in LZ4 stopped there for ever (KAFKA-3160).
    (batch,) = split(message_of_magic_0(frame_of(message_set(0, 0), checksum_off_by)), convert)
    records = unpack(batch, 0)
    assert [(record.offset, record.timestamp) for record in records] == [(100, -1), (101, -1), (102, -1)]
    assert [key_and_value(record.body)[1] for record in records] == [b"value 0", None, b"value 2"]


def test_case_835_lz4_of_magic_0_that_is_damaged_is_never_forwarded() -> None:
    twice = message_of_magic_0(frame_of(message_set(0, 0)))
    for inside in (twice, message_set(0, 1), message_set(0, 0)[:-5], message_set(0, 0) + b"\0", b"", b"\0" * 40):
        with pytest.raises(BatchCorrupt):
            list(split(message_of_magic_0(frame_of(inside)), convert))
    for frame in (b"no frame", b"", frame_of(message_set(0, 0))[:-20]):
        with pytest.raises(BatchCorrupt):
            list(split(message_of_magic_0(frame), convert))


def test_an_old_message_whose_crc_is_wrong_is_never_forwarded() -> None:
    damaged = bytearray(message_set(1, 0))
    damaged[-1] ^= 1
    with pytest.raises(BatchCorrupt, match="CRC"):
        list(split(bytes(damaged), convert))


def test_an_old_message_where_none_is_expected_is_corrupt() -> None:
    with pytest.raises(BatchCorrupt, match="magic 1"):
        list(split(message_set(1, 0)))


def message(offset: int, time: int, value: bytes, codec: int = 0) -> bytes:
    """A message of magic 1 without a key."""
    content = struct.pack(">bbqii", 1, codec, time, -1, len(value)) + value
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content


def test_case_1020_old_messages_whose_times_are_far_apart_keep_them() -> None:
    times = [-(2**63), 2**63 - 1]
    inside = b"".join(message(number, time, b"v") for number, time in enumerate(times))
    (batch,) = split(message(1, times[1], gzip.compress(inside), 1), convert)
    assert [record.timestamp for record in unpack(batch, 0)] == times
    (sent,) = outgoing([batch], 1)  # a part of it is rebuilt
    assert sent.max_timestamp == times[1]
