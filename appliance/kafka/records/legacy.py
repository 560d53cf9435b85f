"""Messages of magic 0 and 1, as clients before Kafka 0.11 wrote them, turned into a batch of magic 2 (KIP-32, KIP-98).

Big-endian, one entry of a message set; a compressed one holds a message set in its value::

    offset i64 | size i32 | crc u32 (CRC-32 of all that follows it) | magic i8 | attributes i8 |
    timestamp i64 (magic 1 alone) | key size i32, key | value size i32, value

Such a message has no headers, and one of magic 0 has no time: -1. In magic 0 the header of an LZ4 frame has a checksum
that is not LZ4's (KAFKA-3160), and that consumers of Java and librdkafka ignore.
"""

import contextlib
from collections.abc import Iterator

from aiokafka.record.legacy_records import LegacyRecordBatch
from cramjam import DecompressionError

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import CODEC_MASK, LOG_OVERHEAD, Batch
from appliance.kafka.records.decompression import LIMIT, decompress
from appliance.kafka.records.records import Record, body, placed, unpack

_LZ4 = 3
_LIMIT = LIMIT // 4
"""A decoded message takes up to ten times its bytes."""
_MAGIC_AT, _ATTRIBUTES_AT, _KEY_SIZE_AT = 16, 17, 18
_FRAME_HAS_SIZE = 0x08


def convert(data: memoryview, offset: int, magic: int) -> Batch:
    """One entry as a batch; ``offset`` is the entry's own, the last one inside when it is compressed.

    Raises:
        BatchCorrupt: the CRC does not fit, or the messages cannot be read.
    """
    records = _messages(data, offset, magic)
    if not records:
        raise BatchCorrupt(f"the message of magic {magic} at offset {offset} holds nothing")
    return placed(records, data[_ATTRIBUTES_AT] & CODEC_MASK)


def _messages(data: memoryview, offset: int, magic: int) -> list[Record]:
    try:
        entry = LegacyRecordBatch(bytearray(data), magic)
        if not entry.validate_crc():
            raise BatchCorrupt(f"the CRC of the message at offset {offset} does not fit its bytes")
        codec_bits, value = data[_ATTRIBUTES_AT] & CODEC_MASK, _value(data, magic)
        if magic == 0 and codec_bits == _LZ4:
            return [record for each in _entries(_without_lz4(value)) for record in unpack(each, 0)]
        decompress(codec_bits, value, _LIMIT)  # the library below has no limit
        return [Record(r.offset, -1 if r.timestamp is None else r.timestamp, body(r.key, r.value)) for r in entry]
    except Exception as error:  # each codec, and the library, has errors of its own
        why = str(error) or repr(error)
        raise BatchCorrupt(f"the message of magic {magic} at offset {offset} cannot be read: {why}") from error


def _value(data: memoryview, magic: int) -> memoryview:
    """The bytes of a message's value."""
    at = _KEY_SIZE_AT + 8 * magic
    key_size = max(0, int.from_bytes(data[at : at + 4], "big", signed=True))
    return data[at + 4 + key_size + 4 :]


def _without_lz4(value: memoryview) -> memoryview:
    """The message set in a message of magic 0; the right checksum of the frame's header is the one that is accepted."""
    frame = bytearray(value)
    at = 14 if frame[4] & _FRAME_HAS_SIZE else 6
    for frame[at] in range(256):
        with contextlib.suppress(DecompressionError):
            return memoryview(decompress(_LZ4, memoryview(frame), _LIMIT))
    raise ValueError("a damaged LZ4 frame")


def _entries(inside: memoryview) -> Iterator[Batch]:
    """Each message of a set that was in another, as a batch; a cut one has a wrong CRC."""
    while inside:
        end = LOG_OVERHEAD + int.from_bytes(inside[8:LOG_OVERHEAD], "big")
        if inside[_ATTRIBUTES_AT] & CODEC_MASK:
            raise ValueError("compressed twice")
        yield convert(inside[:end], int.from_bytes(inside[:8], "big"), inside[_MAGIC_AT])
        inside = inside[end:]
