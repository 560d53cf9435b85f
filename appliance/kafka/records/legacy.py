"""Messages of magic 0 and 1, as clients before Kafka 0.11 wrote them, turned into a batch of magic 2 (KIP-32, KIP-98).

Big-endian, one entry of a message set; a compressed one holds a message set in its value::

    offset i64 | size i32 | crc u32 (CRC-32 of all that follows it) | magic i8 | attributes i8 |
    timestamp i64 (magic 1 alone) | key size i32, key | value size i32, value

Such a message has no headers, and one of magic 0 has no time: -1. In magic 0 the header of an LZ4 frame has a checksum
that is not LZ4's (KAFKA-3160), and that consumers of Java and librdkafka ignore.
"""

import contextlib
import zlib
from collections.abc import Iterator

from cramjam import DecompressionError

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import CODEC_MASK, LOG_APPEND_TIME, LOG_OVERHEAD, Batch
from appliance.kafka.records.decompression import LIMIT, decompress
from appliance.kafka.records.records import Record, body, placed

_LZ4 = 3
_MAGIC_AT, _ATTRIBUTES_AT, _KEY_SIZE_AT = 16, 17, 18
_FRAME_HAS_SIZE = 0x08


def convert(data: memoryview, offset: int, magic: int) -> Batch:
    """One entry as a batch; ``offset`` is the entry's own, the last one inside when it is compressed."""
    try:
        return placed(_messages(data, offset, magic), data[_ATTRIBUTES_AT] & CODEC_MASK)
    except Exception as error:  # each codec has errors of its own
        raise BatchCorrupt(f"the message of magic {magic} at offset {offset} cannot be read: {error}") from error


def _messages(data: memoryview, offset: int, magic: int) -> list[Record]:
    if zlib.crc32(data[_MAGIC_AT:]) != int.from_bytes(data[LOG_OVERHEAD:_MAGIC_AT], "big"):
        raise ValueError("its CRC does not fit its bytes")
    attributes, at = data[_ATTRIBUTES_AT], _KEY_SIZE_AT + 8 * magic
    timestamp = int.from_bytes(data[_KEY_SIZE_AT:at], "big", signed=True) if magic else -1
    key, at = _nullable(data, at)
    value, _ = _nullable(data, at)
    if not (codec_bits := attributes & CODEC_MASK):
        return [Record(offset, timestamp, body(key, value))]
    packed = memoryview(value or b"")
    inside = _without_lz4(packed) if (magic, codec_bits) == (0, _LZ4) else decompress(codec_bits, packed, LIMIT // 4)
    messages = [*_inside(memoryview(inside), magic)]
    # In magic 1, offsets inside count from any number (KIP-31), and times may be the broker's (KIP-32).
    shift, appended = (offset - messages[-1].offset, attributes & LOG_APPEND_TIME) if magic else (0, 0)
    return [Record(each.offset + shift, timestamp if appended else each.timestamp, each.body) for each in messages]


def _nullable(data: memoryview, at: int) -> tuple[bytes | None, int]:
    begin, size = at + 4, int.from_bytes(data[at : at + 4], "big", signed=True)
    end = begin + max(size, 0)
    if end > len(data):
        raise ValueError("it ends early")
    return (None if size < 0 else bytes(data[begin:end])), end


def _without_lz4(value: memoryview) -> bytes:
    """The message set in a message of magic 0; the right checksum of the frame's header is the one that is accepted."""
    frame = bytearray(value)
    at = 14 if frame[4] & _FRAME_HAS_SIZE else 6
    for frame[at] in range(256):
        with contextlib.suppress(DecompressionError):
            return decompress(_LZ4, memoryview(frame), LIMIT // 4)
    raise ValueError("a damaged LZ4 frame")


def _inside(data: memoryview, magic: int) -> Iterator[Record]:
    """The records of each message of a set that was in another; a cut one has a wrong CRC."""
    while data:
        end = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big")
        if data[_ATTRIBUTES_AT] & CODEC_MASK or data[_MAGIC_AT] != magic:
            raise ValueError("compressed twice, or of another magic")
        yield from _messages(data[:end], int.from_bytes(data[:8], "big", signed=True), magic)
        data = data[end:]
