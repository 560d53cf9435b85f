import struct

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


def test_an_old_message_whose_crc_is_wrong_is_never_forwarded() -> None:
    damaged = bytearray(message_set(1, 0))
    damaged[-1] ^= 1
    with pytest.raises(BatchCorrupt, match="CRC"):
        list(split(bytes(damaged), convert))


def test_an_old_message_where_none_is_expected_is_corrupt() -> None:
    with pytest.raises(BatchCorrupt, match="magic 1"):
        list(split(message_set(1, 0)))
