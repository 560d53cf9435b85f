"""Rebuild several batches, or a part of one, as one batch without holes.

aiokafka's compiled reader and writer do it at a million records a second; but they take header keys for UTF-8, which
nobody promised. Our own slower code reads all other batches. It leaves keys, values and headers as bytes, and tells
corrupt records from unusual ones.
"""

import collections
import contextlib
import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from aiokafka.record.default_records import DefaultRecord, DefaultRecordBatch, DefaultRecordBatchBuilder

from appliance.kafka.records.batch import CODEC_MASK, HEADER_SIZE, Batch
from appliance.kafka.records.decompression import LIMIT, RECORD_BYTES, decompress_records
from appliance.kafka.records.lz4 import BLOCK_BYTES, CODEC_AT, uncompressed_batch, without_codec
from appliance.kafka.records.records import Record, batch_of, newest, pack, unpack

_UNBOUNDED = 2**31 - 1
_AT_ONCE = 128
_COMPILED_BYTES = 8 * 1024 * 1024
"""Bytes of a batch up to which the library reads it: two bytes that are a header take 70 in its records."""

_TIMESTAMP, _KEY, _VALUE, _HEADERS = map(operator.attrgetter, ("timestamp", "key", "value", "headers"))
_OFFSET = operator.attrgetter("offset")


Runs = tuple[tuple[int, int], ...]
"""The source offsets of a batch's records, as runs without holes: the first offset and the length of each.

Empty if there is only one run.
"""


class Rebuilt(NamedTuple):
    """A batch to be restamped; ``first_offset`` is its first record's at the source, ``memory`` its size unpacked."""

    data: bytes
    records: int
    first_offset: int
    max_timestamp: int
    memory: int
    runs: Runs = ()


def rebuild(batches: Sequence[Batch], selection: range, limit: int = LIMIT) -> Rebuilt | None:
    """The records of the batches at the offsets of ``selection``, with the codec of the first; None: none are."""
    with contextlib.suppress(Exception):  # the library has a dozen ways to say that it will not read something
        return _compiled(batches, selection, limit)
    return _plain(batches, selection, limit)


def batch_builder() -> tuple[DefaultRecordBatchBuilder, bytearray]:
    """A builder of a batch of any size, and the bytes that it appends to."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=_UNBOUNDED,
    )
    # Built while empty, it returns the bytes that it appends to: built later, it would compute a useless CRC.
    return builder, builder.build()


def payload_of(builder: DefaultRecordBatchBuilder, data: bytearray) -> memoryview:
    """The appended records."""
    if len(data) != builder.size():
        raise BufferError("what the library built empty is not what it has appended to")
    return memoryview(data)[HEADER_SIZE:]


def _compiled(batches: Sequence[Batch], selection: range, limit: int = LIMIT) -> Rebuilt | None:
    builder, data = batch_builder()
    count, first_offset, base_timestamp, max_timestamp = 0, -1, -1, -1
    runs: list[tuple[int, int]] = []
    for records in _read(batches, selection, limit):
        timestamps = [*map(_TIMESTAMP, records)]
        if min(timestamps) < 0:
            return _plain(batches, selection, limit)  # the writer treats a first timestamp of -1 as none
        if not count:
            first_offset, base_timestamp = records[0].offset, timestamps[0]
        max_timestamp = max(max_timestamp, *timestamps)
        add_runs(runs, [*map(_OFFSET, records)])
        numbers = range(count, count + len(records))
        fields = map(_KEY, records), map(_VALUE, records), map(_HEADERS, records)
        collections.deque(map(builder.append, numbers, timestamps, *fields), maxlen=0)  # a loop in C
        count += len(records)
    if not count:
        return None
    whole = batch_of(payload_of(builder, data), _codec(batches), count, base_timestamp, max_timestamp)
    return Rebuilt(whole, count, first_offset, max_timestamp, len(data), tuple(runs) if len(runs) > 1 else ())


def add_runs(runs: list[tuple[int, int]], offsets: Sequence[int]) -> None:
    """Add ascending source offsets to the runs before."""
    first, length = runs.pop() if runs else (offsets[0], 0)
    if first + length == offsets[0] and offsets[-1] - offsets[0] + 1 == len(offsets):
        runs.append((first, length + len(offsets)))
        return
    for offset in offsets:
        if offset == first + length:
            length += 1
        else:
            runs.append((first, length))
            first, length = offset, 1
    runs.append((first, length))


def _read(batches: Sequence[Batch], selection: range, limit: int) -> Iterator[list[DefaultRecord]]:
    """The wanted records, in chunks: loops stay long, and a large batch is never decoded as a whole."""
    records = itertools.chain.from_iterable(_readers(batches, selection, limit))
    while some := [*itertools.islice(records, _AT_ONCE)]:
        yield some


def _readers(batches: Sequence[Batch], selection: range, limit: int) -> Iterator[Iterable[DefaultRecord]]:
    room = memoryview(bytearray(BLOCK_BYTES))
    for batch in batches:
        reader, size = compiled_reader(batch, room, limit)
        limit -= size
        whole = selection.start <= batch.header.base_offset and batch.header.last_offset < selection.stop
        yield reader if whole else _only(selection, reader)


def compiled_reader(batch: Batch, room: memoryview, limit: int = LIMIT) -> tuple[DefaultRecordBatch, int]:
    """The library's reader of a batch, and the memory that the records take; ``room`` is that of ``without_codec``."""
    data = without_codec(batch, room)
    if data[CODEC_AT] & CODEC_MASK:
        data = uncompressed_batch(data, decompress_records(batch, limit))
    if len(data) > _COMPILED_BYTES:
        raise BufferError(f"its records take more than {_COMPILED_BYTES} bytes")
    return DefaultRecordBatch(data), len(data) + RECORD_BYTES * batch.header.records


def _only(selection: range, records: Iterable[DefaultRecord]) -> Iterator[DefaultRecord]:
    return (record for record in records if record.offset in selection)


def _plain(batches: Sequence[Batch], selection: range, limit: int = LIMIT) -> Rebuilt | None:
    records = _records(batches, selection, limit)
    return _of(records, _codec(batches)) if records else None


def within(batches: Sequence[Batch], selection: range, limit: int) -> Iterator[Rebuilt]:
    """The same records as ``rebuild``, in batches of at most ``limit`` bytes.

    A record that is too large by itself is returned anyway: the broker decides.
    """
    return _split(_records(batches, selection, LIMIT), _codec(batches), limit)


def _split(records: Sequence[Record], codec_bits: int, limit: int) -> Iterator[Rebuilt]:
    if not records:
        return
    whole = _of(records, codec_bits)
    if len(whole.data) <= limit or len(records) == 1:
        yield whole
        return
    middle = len(records) // 2
    yield from _split(records[:middle], codec_bits, limit)
    yield from _split(records[middle:], codec_bits, limit)


def _records(batches: Sequence[Batch], selection: range, limit: int) -> list[Record]:
    unpacked = (unpack(batch, selection.start, limit // len(batches)) for batch in batches)
    return [record for records in unpacked for record in records if record.offset < selection.stop]


def _of(records: Sequence[Record], codec_bits: int) -> Rebuilt:
    runs: list[tuple[int, int]] = []
    add_runs(runs, [record.offset for record in records])
    whole = pack(records, codec_bits)
    size = sum(len(record.body) for record in records)
    return Rebuilt(whole, len(records), records[0].offset, newest(records), size, tuple(runs) if len(runs) > 1 else ())


def _codec(batches: Sequence[Batch]) -> int:
    return batches[0].header.attributes & CODEC_MASK
