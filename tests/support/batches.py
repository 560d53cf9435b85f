"""Record batches of every kind, as bytes, made without the code under test if possible."""

import struct
from collections.abc import Sequence

import crc32c
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from appliance.kafka.records.batch import HEADER, Batch, Header, restamp, split

Written = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]
"""Timestamp, key, value, headers."""


def made(records: Sequence[Written], base_offset: int = 0, codec: int = 0, **fields: int) -> bytes:
    """A batch from another client's compiled encoder, with the given header fields."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2**27,
    )
    for number, (timestamp, key, value, headers) in enumerate(records):
        assert builder.append(number, timestamp, key, value, headers=headers) is not None
    return patched(bytes(builder.build()), base_offset=base_offset, **fields)


def patched(data: bytes, **fields: int) -> bytes:
    """The batch with other header fields and their correct CRC; ``crc`` can set a wrong one."""
    header = Header._make(HEADER.unpack_from(data))._replace(**fields)
    changed = HEADER.pack(*header) + data[HEADER.size :]
    crc = fields.get("crc", crc32c.crc32c(changed[21:]))
    return changed[:17] + struct.pack(">I", crc) + changed[21:]


def with_holes(records: Sequence[Written], deltas: Sequence[int], base_offset: int, **fields: int) -> bytes:
    """A batch as compaction leaves it: each record at its own offset delta."""
    data = made(records, base_offset)
    body = bytearray()
    at = HEADER.size
    for delta in deltas:
        size, after = data[at] >> 1, at + 1
        assert data[at] < 0x80, "records of up to 63 bytes"
        record = bytearray(data[after : after + size])
        # attributes, a timestamp delta and an offset delta of one byte each
        assert record[1] < 0x80
        assert delta < 64
        record[2] = delta << 1
        body += bytes([size << 1]) + record
        at = after + size
    header = Header._make(HEADER.unpack_from(data))
    length = 49 + len(body)
    whole = HEADER.pack(*header._replace(length=length)) + bytes(body)
    return patched(whole, last_offset_delta=fields.pop("last_offset_delta", deltas[-1]), **fields)


def control(base_offset: int, producer_id: int, kind: int) -> bytes:
    """A transaction marker: kind 0 aborts, 1 commits."""
    key = struct.pack(">hh", 0, kind)
    return made(
        [(1_700_000_000_000, key, struct.pack(">hi", 0, 0), [])],
        base_offset,
        attributes=0x30,
        producer_id=producer_id,
        producer_epoch=0,
    )


def only(data: bytes) -> Batch:
    """The one batch in the bytes."""
    (batch,) = split(data)
    return batch


def stamped(data: bytes | bytearray | memoryview, producer_id: int = 1, epoch: int = 0, sequence: int = 0) -> Batch:
    """The batch, as a lane sends it."""
    copy = bytearray(data)
    restamp(copy, producer_id, epoch, sequence)
    return only(bytes(copy))
