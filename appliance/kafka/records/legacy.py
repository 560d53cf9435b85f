"""Messages of magic 0 and 1, as clients before Kafka 0.11 wrote them, turned into a batch of magic 2 (KIP-32, KIP-98).

Big-endian, one entry of a message set; a compressed one holds a message set in its value::

    offset i64 | size i32 | crc u32 (CRC-32 of all that follows it) | magic i8 | attributes i8 |
    timestamp i64 (magic 1 alone) | key size i32, key | value size i32, value

Such a message has no headers, and one of magic 0 has no time: -1.
"""

import struct

from aiokafka.errors import KafkaError
from aiokafka.record.legacy_records import LegacyRecordBatch

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.records import Record, body, placed


def convert(data: memoryview, offset: int, magic: int) -> Batch:
    """One entry as a batch; ``offset`` is the entry's own, the last one inside when it is compressed.

    Raises:
        BatchCorrupt: the CRC does not fit, or the messages cannot be read.
    """
    records = _messages(data, offset, magic)
    if not records:
        raise BatchCorrupt(f"the message of magic {magic} at offset {offset} holds nothing")
    return placed(records)


def _messages(data: memoryview, offset: int, magic: int) -> list[Record]:
    try:
        entry = LegacyRecordBatch(bytearray(data), magic)
        if not entry.validate_crc():
            raise BatchCorrupt(f"the CRC of the message at offset {offset} does not fit its bytes")
        return [Record(r.offset, -1 if r.timestamp is None else r.timestamp, body(r.key, r.value)) for r in entry]
    except (KafkaError, ValueError, IndexError, struct.error) as error:
        raise BatchCorrupt(f"the message of magic {magic} at offset {offset} cannot be read: {error!r}") from error
