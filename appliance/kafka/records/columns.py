"""The records of batches as columns, one list for each field, and columns as batches again.

As in ``rebuild``, aiokafka's compiled code does the usual batch, and our own slower code the unusual one: negative
timestamps, and header keys that are not UTF-8, which nobody promised. Keys, values and headers stay as they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from aiokafka.record.default_records import DefaultRecordBatch

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import CODEC_MASK, HEADER_SIZE, Batch, split
from appliance.kafka.records.lz4 import BLOCK_BYTES, without_codec
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.rebuild import Runs, add_runs, batch_builder, payload_of
from appliance.kafka.records.records import Record, batch_at, batch_of, body_of, fields_of, pack, unpack
from appliance.kafka.records.records import placed as placed_records

BATCH_BYTES = 512 * 1024
"""Size of a batch of columns, before it is compressed."""

_OVERHEAD = 32
"""Most bytes that a record takes beside its key, value and headers; each header takes as many at most."""

Headers = Sequence[tuple[bytes, bytes | None]]


@dataclass(slots=True)
class Columns:
    """Records in ascending order of their source offsets; timestamps in milliseconds."""

    offsets: list[int] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets)

    def rows(self, begin: int, end: int) -> "Columns":
        """Some of the records, by their numbers."""
        some = slice(begin, end)
        return Columns(
            self.offsets[some], self.timestamps[some], self.keys[some], self.values[some], self.headers[some]
        )

    def add(self, others: "Columns") -> None:
        """Add records that follow."""
        self.offsets += others.offsets
        self.timestamps += others.timestamps
        self.keys += others.keys
        self.values += others.values
        self.headers += others.headers

    def within(self, first: int, following: int) -> "Columns":
        """The records from a source offset up to another one."""
        inside = [number for number, offset in enumerate(self.offsets) if first <= offset < following]
        return self.rows(inside[0], inside[-1] + 1) if inside else Columns()

    @property
    def size(self) -> int:
        """The bytes of all keys, values and headers."""
        headers = chain.from_iterable(chain.from_iterable(filter(None, self.headers)))
        return sum(map(len, filter(None, chain(self.keys, self.values, headers))))

    @property
    def sizes(self) -> list[int]:
        """The most bytes that each record takes in a batch that is not compressed."""
        return [
            len(key or b"") + len(value or b"") + _OVERHEAD + (_headers_size(headers) if headers else 0)
            for key, value, headers in zip(self.keys, self.values, self.headers, strict=True)
        ]


def _encoded_names(headers: Sequence[tuple[str, bytes | None]]) -> Headers:
    return [(name.encode(), value) for name, value in headers]


def _headers_size(headers: Headers) -> int:
    return sum([len(name) + len(value or b"") + _OVERHEAD for name, value in headers])


def decoded(data: bytes | memoryview, first_offset: int, runs: Runs) -> Columns:
    """The records of one batch; ``first_offset`` and ``runs`` are those of ``Outgoing``.

    Raises:
        BatchCorrupt: the records do not decompress, or do not fit their lengths or counts.
    """
    (batch,) = split(data)
    count = batch.header.records
    offsets = list(
        chain.from_iterable(range(first, first + length) for first, length in runs or [(first_offset, count)])
    )
    try:
        records = list(DefaultRecordBatch(without_codec(batch, memoryview(bytearray(BLOCK_BYTES)))))
        columns = Columns(
            offsets,
            [record.timestamp for record in records],
            [record.key for record in records],
            [record.value for record in records],
            [_encoded_names(record.headers) if record.headers else () for record in records],
        )
    except Exception:  # the library has a dozen ways to say that it will not read something
        plain = unpack(batch, batch.header.base_offset)
        fields = [fields_of(record.body) for record in plain]
        keys, values = [key for key, _, _ in fields], [value for _, value, _ in fields]
        columns = Columns(
            offsets, [record.timestamp for record in plain], keys, values, [headers for _, _, headers in fields]
        )
    if not len(columns.offsets) == len(columns.values) == count:
        raise BatchCorrupt(f"the batch at offset {first_offset} does not hold its {count} records")
    return columns


def codec_of(data: bytes | memoryview) -> int:
    """The codec of a batch, as in its attributes."""
    (batch,) = split(data)
    return batch.header.attributes & CODEC_MASK


def encoded(columns: Columns, codec_bits: int, limit: int, following: int) -> Iterator[Outgoing]:
    """The records as batches of at most ``limit`` bytes; ``following`` is the source offset after the last one.

    A record that is too large by itself is returned anyway: the broker decides.
    """
    begin, size, most = 0, HEADER_SIZE, min(limit, BATCH_BYTES)
    for number, more in enumerate(columns.sizes):
        if number > begin and size + more > most:
            yield _batch(columns.rows(begin, number), codec_bits, columns.offsets[number])
            begin, size = number, HEADER_SIZE
        size += more
    if begin < len(columns):
        yield _batch(columns.rows(begin, len(columns)), codec_bits, following)


def _batch(columns: Columns, codec_bits: int, following: int) -> Outgoing:
    runs: list[tuple[int, int]] = []
    add_runs(runs, columns.offsets)
    newest = max(columns.timestamps)
    if payload := _compiled(columns, range(len(columns))):
        data = batch_of(payload, codec_bits, len(columns), columns.timestamps[0], newest)
    else:
        data = pack(_records(columns), codec_bits)
    some = tuple(runs) if len(runs) > 1 else ()
    return Outgoing(data, len(columns), columns.offsets[0], following, newest, raw=False, runs=some)


def _records(columns: Columns) -> list[Record]:
    fields = zip(columns.offsets, columns.timestamps, columns.keys, columns.values, columns.headers, strict=True)
    return [
        Record(offset, timestamp, body_of(key, value, headers)) for offset, timestamp, key, value, headers in fields
    ]


def _compiled(columns: Columns, deltas: Sequence[int]) -> memoryview | None:
    """The records of a batch by the compiled code; None for times before 1970, and a header's key that is not UTF-8."""
    if min(columns.timestamps) < 0:
        return None
    try:
        headers = [[(name.decode(), value) for name, value in each] for each in columns.headers]
    except UnicodeDecodeError:
        return None
    builder, data = batch_builder()
    for delta, *fields in zip(deltas, columns.timestamps, columns.keys, columns.values, headers, strict=True):
        builder.append(delta, *fields)
    return payload_of(builder, data)


def placed(columns: Columns) -> Batch:
    """The same as ``records.placed``: a batch that is not compressed, with each record at its own offset."""
    base = columns.offsets[0]
    deltas = [offset - base for offset in columns.offsets]
    if (payload := _compiled(columns, deltas)) is None:
        return placed_records(_records(columns))
    return batch_at(base, payload, deltas, columns.timestamps[0], max(columns.timestamps))
