"""The records inside a batch, each as an offset, a timestamp and opaque bytes.

A record of magic 2 (https://kafka.apache.org/documentation/#record)::

    length varint | attributes i8 | timestampDelta varint | offsetDelta varint | key, value, headers

Key, value and headers are never changed; only the fields before them depend on the batch.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from aiokafka import codec

from appliance.errors import BatchCorrupt
from appliance.kafka.records import lz4
from appliance.kafka.records.batch import HEADER, HEADER_SIZE, LOG_APPEND_TIME, LOG_OVERHEAD, Batch, Header, stamp_crc
from appliance.kafka.records.decompression import LIMIT, decompress_records
from appliance.kafka.records.varint import read_varint, varint, wrap

# The levels are those of Kafka's own producer, not the library's slower ones.
_COMPRESS: dict[int, Callable[[memoryview], bytes | memoryview]] = {
    0: lambda payload: payload,
    1: functools.partial(codec.gzip_encode, compresslevel=6),
    2: codec.snappy_encode,
    3: lz4.frame,
    4: functools.partial(codec.zstd_encode, level=3),
}


class Record(NamedTuple):
    """One record; ``timestamp`` in milliseconds as a consumer sees it, ``body`` its key, value and headers."""

    offset: int
    timestamp: int
    body: bytes


def unpack(batch: Batch, position: int, limit: int = LIMIT) -> list[Record]:
    """The batch's records from offset ``position`` on.

    With LogAppendTime the batch's maxTimestamp is the time of every record; otherwise the record's own.
    """
    header = batch.header
    payload = decompress_records(batch, limit)
    append_time = bool(header.attributes & LOG_APPEND_TIME)
    records: list[Record] = []
    at = 0
    try:
        for _ in range(header.records):
            size, at = read_varint(payload, at)
            end = at + size
            delta, at = read_varint(payload, at + 1)
            offset_delta, at = read_varint(payload, at)
            if not at <= end <= len(payload):
                raise BatchCorrupt(f"a record of the batch at offset {header.base_offset} does not fit its length")
            offset = header.base_offset + offset_delta
            if offset >= position:
                timestamp = header.max_timestamp if append_time else wrap(header.base_timestamp + delta)
                records.append(Record(offset, timestamp, payload[at:end]))
            at = end
    except IndexError as error:
        raise BatchCorrupt(
            f"the batch at offset {header.base_offset} holds less than its {header.records} records"
        ) from error
    if at != len(payload):
        raise BatchCorrupt(f"the batch at offset {header.base_offset} holds more than its {header.records} records")
    return records


def pack(records: Sequence[Record], codec_bits: int) -> bytes:
    """The records as one batch without holes, from base offset 0, for restamping; their order stays."""
    payload = memoryview(_payload(records, range(len(records))))
    return batch_of(payload, codec_bits, len(records), records[0].timestamp, newest(records))


def batch_of(payload: memoryview, codec_bits: int, count: int, base_timestamp: int, max_timestamp: int) -> bytes:
    """A batch without holes, from base offset 0, of ``count`` encoded records; its CRC is left for ``restamp``."""
    compressed = _COMPRESS[codec_bits](payload)
    header = _header(0, len(compressed), codec_bits, count, count - 1, base_timestamp, max_timestamp)
    return b"".join((HEADER.pack(*header), compressed))


def placed(records: Sequence[Record], codec_bits: int = 0) -> Batch:
    """The records as a batch with each at its own offset, as a broker would keep it, with a correct CRC."""
    base = records[0].offset
    deltas = [record.offset - base for record in records]
    payload = memoryview(_COMPRESS[codec_bits](memoryview(_payload(records, deltas))))
    return batch_at(base, payload, deltas, (records[0].timestamp, newest(records)), codec_bits)


def batch_at(
    base_offset: int, payload: memoryview, deltas: Sequence[int], times: tuple[int, int], codec_bits: int = 0
) -> Batch:
    """The batch of encoded records as a broker keeps it, with a correct CRC; ``times``: its base and newest ones."""
    header = _header(base_offset, len(payload), codec_bits, len(deltas), deltas[-1], *times)
    data = bytearray(HEADER.pack(*header))
    data += payload
    stamp_crc(data)
    return Batch(Header._make(HEADER.unpack_from(data)), memoryview(data))


def _payload(records: Sequence[Record], deltas: Sequence[int]) -> bytes:
    base = records[0].timestamp
    return b"".join(_encoded(record, delta, base) for record, delta in zip(records, deltas, strict=True))


def newest(records: Sequence[Record]) -> int:
    """The records' newest timestamp, in milliseconds."""
    return max(record.timestamp for record in records)


def _header(
    base_offset: int,
    payload_bytes: int,
    attributes: int,
    count: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
) -> Header:
    return Header(
        base_offset=base_offset,
        length=HEADER_SIZE - LOG_OVERHEAD + payload_bytes,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records=count,
    )


def body(key: bytes | None, value: bytes | None, with_headers: Sequence[tuple[str, bytes]] = ()) -> bytes:
    """The bytes of a record with this key, value and headers; None is null."""
    return body_of(key, value, [(name.encode(), content) for name, content in with_headers])


def body_of(key: bytes | None, value: bytes | None, with_headers: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    """The bytes of a record; the keys of its headers are bytes, whatever they mean."""
    encoded = _nullable(key) + _nullable(value) + varint(len(with_headers))
    for name, content in with_headers:
        encoded += _nullable(name) + _nullable(content)
    return encoded


def key_and_value(record_body: bytes) -> tuple[bytes | None, bytes | None]:
    """The key and the value in a record's bytes."""
    try:
        key, at = _read_nullable(record_body, 0)
        value, _ = _read_nullable(record_body, at)
    except IndexError as error:
        raise BatchCorrupt("a record ends within its key or value") from error
    return key, value


def headers(record_body: bytes) -> dict[str, bytes | None]:
    """The headers in a record's bytes; the last of those with the same name."""
    return {name.decode(errors="replace"): content for name, content in fields_of(record_body)[2]}


def fields_of(record_body: bytes) -> tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]:
    """The key, the value and the headers in a record's bytes."""
    headers: list[tuple[bytes, bytes | None]] = []
    try:
        key, at = _read_nullable(record_body, 0)
        value, at = _read_nullable(record_body, at)
        count, at = read_varint(record_body, at)
        for _ in range(count):
            name, at = _read_nullable(record_body, at)
            content, at = _read_nullable(record_body, at)
            headers.append((name or b"", content))
    except IndexError as error:
        raise BatchCorrupt("a record ends within its headers") from error
    return key, value, headers


def _nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def _read_nullable(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise IndexError(at)
    return data[at : at + size], at + size


def _encoded(record: Record, delta: int, base: int) -> bytes:
    lead = b"\0" + varint(wrap(record.timestamp - base)) + varint(delta)
    return varint(len(lead) + len(record.body)) + lead + record.body
