"""A record batch of magic 2, seen through its header (KIP-98; https://kafka.apache.org/documentation/#recordbatch).

Big-endian, 61 bytes::

     0 baseOffset i64             21 attributes i16          43 producerId i64
     8 batchLength i32            23 lastOffsetDelta i32     51 producerEpoch i16
    12 partitionLeaderEpoch i32   27 baseTimestamp i64       53 baseSequence i32
    16 magic i8                   35 maxTimestamp i64        57 recordsCount i32
    17 crc u32                                               61 records

batchLength counts what follows it. The CRC-32C covers attributes to the end, so that a broker may set base offset and
leader epoch without computing it again. Attributes: codec in bits 0-2, 3 LogAppendTime, 4 transactional, 5 control,
6 delete horizon (KIP-534: baseTimestamp is the horizon then).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import crc32c

from appliance.errors import ApplianceError, BatchCorrupt, PartitionStopped

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LOG_OVERHEAD = 12
"""Base offset and length: what batchLength does not count."""

_CRC = struct.Struct(">I")
_CRC_AT = 17
_CHECKED_FROM = 21

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
        """The offset of the last record, or of where it was before compaction took it."""
        return self.base_offset + self.last_offset_delta


@dataclass(slots=True)
class Batch:
    """One batch: its header, and all its bytes, header included."""

    header: Header
    data: memoryview


def split(records: bytes | memoryview) -> Iterator[Batch]:
    """The whole batches in what a Fetch brought; a broker may cut the last one short (KIP-74), which is left out.

    Raises:
        BatchCorrupt: a length that cannot be.
        PartitionStopped: a message of magic 0 or 1.
    """
    view = memoryview(records)
    at, end = 0, len(view)
    while end - at >= HEADER_SIZE:
        header = Header._make(HEADER.unpack_from(view, at))
        size = LOG_OVERHEAD + header.length
        if header.magic != 2 or size < HEADER_SIZE:
            raise _unreadable(header)
        if size > end - at:
            return
        yield Batch(header, view[at : at + size])
        at += size


def _unreadable(header: Header) -> ApplianceError:
    if header.magic in (0, 1):  # the magic is at the same place in each of them
        return PartitionStopped(f"messages of magic {header.magic}, of clients before Kafka 0.11, cannot be copied")
    return BatchCorrupt(f"a record batch of magic {header.magic} and length {header.length}")


def verify(batch: Batch) -> None:
    """Check the checksum: what is damaged must never be given a new, right one.

    Raises:
        BatchCorrupt: the CRC does not fit the bytes.
    """
    if crc32c.crc32c(batch.data[_CHECKED_FROM:]) != batch.header.crc:
        raise BatchCorrupt(f"the CRC of the batch at offset {batch.header.base_offset} does not fit its bytes")


def restamp(
    data: memoryview | bytes | bytearray, producer_id: int, producer_epoch: int, base_sequence: int
) -> bytearray:
    """The same records as a transactional batch of another producer, at base offset 0; the bytes of ``data`` stay."""
    header = Header._make(HEADER.unpack_from(data))
    stamped = bytearray(data)
    HEADER.pack_into(
        stamped,
        0,
        *header._replace(
            base_offset=0,
            leader_epoch=-1,
            attributes=header.attributes & CODEC_MASK | TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        ),
    )
    _CRC.pack_into(stamped, _CRC_AT, crc32c.crc32c(memoryview(stamped)[_CHECKED_FROM:]))
    return stamped


def next_sequence(sequence: int, count: int) -> int:
    """The base sequence that follows a batch of ``count`` records; from 2^31-1 it goes on at 0."""
    return (sequence + count) % SEQUENCES
