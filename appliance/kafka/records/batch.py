"""A record batch of magic 2, seen through its header (KIP-98; https://kafka.apache.org/documentation/#recordbatch).

Big-endian, 61 bytes::

     0 baseOffset i64             21 attributes i16          43 producerId i64
     8 batchLength i32            23 lastOffsetDelta i32     51 producerEpoch i16
    12 partitionLeaderEpoch i32   27 baseTimestamp i64       53 baseSequence i32
    16 magic i8                   35 maxTimestamp i64        57 recordsCount i32
    17 crc u32                                               61 records

batchLength counts the bytes after it. The CRC-32C covers attributes to the end, so that a broker may set base offset
and leader epoch without recomputing it. Attributes: codec in bits 0-2, 3 LogAppendTime, 4 transactional, 5 control, 6
delete horizon (KIP-534: baseTimestamp is the horizon then).
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import crc32c

from appliance.errors import BatchCorrupt

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
ATTRIBUTES_AT = 21
LOG_OVERHEAD = 12
"""Base offset and length: the bytes that batchLength does not count."""

_ENTRY = struct.Struct(">qi")
_GLANCE = struct.Struct(">qi4xb4xhi30xi")
"""Base offset, length, magic, attributes, last offset delta, number of records."""

_MAGIC_AT = 16
_LEGACY_SIZE = 26
NO_END = 2**63 - 1
_CRC = struct.Struct(">I")
_CRC_AT = 17
_CHECKED_FROM = ATTRIBUTES_AT
_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT = 43

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

SEQUENCES = 2**31
"""Sequence numbers count modulo this; they are never negative."""


class Header(NamedTuple):
    """The 61 bytes, field by field."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def last_offset(self) -> int:
        """The offset of the last record, even if compaction has removed it."""
        return self.base_offset + self.last_offset_delta


@dataclass(slots=True)
class Batch:
    """One batch: its header, and all its bytes, header included."""

    header: Header
    data: memoryview


Converter = Callable[[memoryview, int, int], Batch]
"""Converts the bytes of a message of magic 0 or 1, with its offset and its magic."""


def split(records: bytes | memoryview, convert: Converter | None = None, stable_end: int = NO_END) -> Iterator[Batch]:
    """The whole batches in a Fetch response. A broker may cut the last one short (KIP-74); that one is left out.

    ``convert`` makes a batch of a message of magic 0 or 1. ``stable_end`` is the log's last stable offset.
    """
    view = memoryview(records)
    at, end, least = 0, len(view), 0
    while end - at > _MAGIC_AT:
        offset, length = _ENTRY.unpack_from(view, at)
        magic, size = view[at + _MAGIC_AT], LOG_OVERHEAD + length
        legacy = convert is not None and magic < 2
        if size < (_LEGACY_SIZE if legacy else HEADER_SIZE) or (magic != 2 and not legacy):
            raise BatchCorrupt(f"a record batch of magic {magic} and length {length} at offset {offset}")
        if size > end - at:
            return
        data = view[at : at + size]
        if convert is not None and legacy:
            batch = convert(data, offset, magic)
        else:
            batch = Batch(Header._make(HEADER.unpack_from(data)), data)
        header = batch.header
        least = _following(header.base_offset, header.last_offset_delta, header.records, least, stable_end)
        yield batch
        at += size


def _following(first: int, last_delta: int, records: int, least: int, stable_end: int) -> int:
    """The offset after a batch, whose own are ``least`` at least.

    Only the cleaner of compacted logs makes a batch empty, and never beyond the last stable offset: it would move a
    reader past what is still to come. Others may lie beyond it by what was written while the broker answered.
    """
    last = first + last_delta
    if not least <= first <= last < NO_END:
        raise BatchCorrupt(f"a batch of the offsets {first} to {last} where {least} is the least possible")
    if records <= 0 and 0 <= stable_end <= last:  # -1: the broker does not tell it
        raise BatchCorrupt(f"an empty batch of the offsets {first} to {last} beyond the log's stable end, {stable_end}")
    return last + 1


def split_data(records: bytes | memoryview, position: int, stable_end: int = NO_END) -> tuple[list[Batch], int]:
    """The whole batches that are not control batches, and the offset that follows the last whole batch of either kind.

    That is ``position`` if there is none. Control batches are skipped unparsed: a compacted log of small transactions
    is little else, and this takes a fifteenth of the time.
    """
    view = memoryview(records)
    batches: list[Batch] = []
    at, end, least = 0, len(view), 0
    while end - at >= HEADER_SIZE:
        base_offset, length, magic, attributes, last_offset_delta, count = _GLANCE.unpack_from(view, at)
        size = LOG_OVERHEAD + length
        if magic != 2 or not HEADER_SIZE <= size <= end - at:
            break
        least = _following(base_offset, last_offset_delta, count, least, stable_end)
        if not attributes & CONTROL:
            data = view[at : at + size]
            batches.append(Batch(Header._make(HEADER.unpack_from(data)), data))
        at += size
    batches += split(view[at:])  # the rest is cut short or corrupt
    return batches, max(position, least)


def verify(batch: Batch) -> None:
    """Check the checksum: a damaged batch must never get a new, valid one."""
    if crc32c.crc32c(batch.data[_CHECKED_FROM:]) != batch.header.crc:
        raise BatchCorrupt(f"the CRC of the batch at offset {batch.header.base_offset} does not fit its bytes")


def restamp(data: memoryview | bytearray, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
    """Restamp a batch in place: the same records, transactional, of another producer, at base offset 0."""
    (attributes,) = _ATTRIBUTES.unpack_from(data, ATTRIBUTES_AT)
    _BASE_OFFSET.pack_into(data, 0, 0)
    _LEADER_EPOCH.pack_into(data, LOG_OVERHEAD, -1)
    _ATTRIBUTES.pack_into(data, ATTRIBUTES_AT, attributes & CODEC_MASK | TRANSACTIONAL)
    _PRODUCER.pack_into(data, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    stamp_crc(data)


def stamp_crc(data: memoryview | bytearray) -> None:
    """Put the bytes' CRC into the header."""
    _CRC.pack_into(data, _CRC_AT, crc32c.crc32c(memoryview(data)[_CHECKED_FROM:]))


def next_sequence(sequence: int, count: int) -> int:
    """The base sequence after a batch of ``count`` records; 2^31-1 is followed by 0."""
    return (sequence + count) % SEQUENCES
