"""Arrow's arrays become batches: all records at once. The layout of a record is in ``records.records``."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from appliance.kafka.records.arrays import varints
from appliance.kafka.records.arrays.varints import Integers
from appliance.kafka.records.batch import HEADER_SIZE
from appliance.kafka.records.records import batch_of

BATCH_BYTES = 512 * 1024
"""The size of a batch, before it is compressed."""

_OVERHEAD = 32
"""Most bytes that a record takes beside its key, value and headers."""

_ATTRIBUTES = pa.scalar(b"\0", pa.binary())
_NO_HEADERS = b"\0"


@dataclass(frozen=True, slots=True)
class Columns:
    """Records in ascending order of their source offsets; timestamps in milliseconds.

    ``headers`` are as in a record, with their count; null if there are none.
    """

    offsets: Integers
    timestamps: Integers
    keys: pa.BinaryArray
    values: pa.BinaryArray
    headers: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, begin: int, end: int) -> "Columns":
        """The records from one number up to another."""
        values = (each.slice(begin, end - begin) for each in (self.keys, self.values, self.headers))
        return Columns(self.offsets[begin:end], self.timestamps[begin:end], *values)

    def between(self, first: int, following: int) -> "Columns":
        """The records from a source offset up to another one."""
        return self.slice(*(int(at) for at in np.searchsorted(self.offsets, [first, following])))

    def of(self, rows: Integers) -> "Columns":
        """Some of the records, by their numbers."""
        values = (each.take(pa.array(rows)) for each in (self.keys, self.values, self.headers))
        return Columns(self.offsets[rows], self.timestamps[rows], *values)

    def sizes(self) -> Integers:
        """The most bytes that each record takes in a batch that is not compressed."""
        return _OVERHEAD + lengths(self.keys) + lengths(self.values) + lengths(self.headers)


def lengths(values: pa.BinaryArray) -> Integers:
    """The bytes of each value, 0 where it is null."""
    lengths = pc.binary_length(values)
    return integers(lengths.fill_null(0) if lengths.null_count else lengths)


def cuts(sizes: Integers, limit: int) -> list[int]:
    """The numbers of the records with which batches of at most ``limit`` bytes begin, given the size of each record.

    A record that is too large by itself has a batch of its own: the broker decides.
    """
    ends, places, at = np.cumsum(sizes), [], 0
    most = min(limit, BATCH_BYTES) - HEADER_SIZE
    while at < len(ends):
        places.append(at)
        before = int(ends[at - 1]) if at else 0
        at = max(at + 1, int(np.searchsorted(ends, before + most, side="right")))
    return places


def batches(columns: Columns, begins: Sequence[int], codecs: Sequence[int]) -> list[bytes]:
    """The records as batches without holes, from base offset 0: each begins with the record of this number.

    Their CRCs are left for ``restamp``.
    """
    counts = np.diff([*begins, len(columns.offsets)])
    bases = np.repeat(columns.timestamps[list(begins)], counts)
    numbers = np.arange(len(columns.offsets)) - np.repeat(begins, counts)
    data, ends = _written(columns, columns.timestamps - bases, numbers)
    newest = np.maximum.reduceat(columns.timestamps, list(begins))
    places = zip(begins, [*begins[1:], len(numbers)], codecs, newest.tolist(), strict=True)
    return [
        batch_of(data[ends[first] : ends[last]], codec, last - first, int(bases[first]), most)
        for first, last, codec, most in places
    ]


def payload(columns: Columns, deltas: Integers, numbers: Integers) -> memoryview:
    """The bytes of all records, with these differences of time and offset to their batch."""
    data, ends = _written(columns, deltas, numbers)
    return data[ends[0] : ends[-1]]


def _written(columns: Columns, deltas: Integers, numbers: Integers) -> tuple[memoryview, list[int]]:
    """The bytes of all records, and their ``bounds``."""
    keys, values, headers = columns.keys, columns.values, columns.headers.fill_null(_NO_HEADERS)
    leading = deltas, numbers, written_sizes(keys), written_sizes(values)
    sizes = len(_ATTRIBUTES.as_py()) + lengths(keys) + lengths(values) + lengths(headers)
    for each in leading:
        sizes += varints.sizes(each)
    size, delta, number, key_size, value_size = map(varints.written, (sizes, *leading))
    records = joined(size, _ATTRIBUTES, delta, number, key_size, or_empty(keys), value_size, or_empty(values), headers)
    return memoryview(records.buffers()[2] or b""), bounds(records)


def joined(*parts: pa.Array) -> pa.BinaryArray:
    """The bytes of each row of the parts, one after the other."""
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def written_sizes(values: pa.BinaryArray) -> Integers:
    """The length that stands before each value: -1 where it is null."""
    lengths = pc.binary_length(values)
    return integers(lengths.fill_null(-1) if lengths.null_count else lengths)


def or_empty(values: pa.BinaryArray) -> pa.BinaryArray:
    """The values, empty where they are null."""
    return values.fill_null(b"") if values.null_count else values


def bounds(values: pa.BinaryArray) -> list[int]:
    """The places in an array's bytes where its values begin, and where the last one ends."""
    ends: list[int] = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1].tolist()
    return ends


def integers(numbers: pa.Array) -> Integers:
    """The numbers, none of which is null."""
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.int64)
