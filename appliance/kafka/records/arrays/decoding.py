"""Batches become places of fields in their uncompressed bytes, and those become Arrow's arrays: all records at once.

The layout of a record is in ``records.records``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from appliance.errors import BatchCorrupt
from appliance.kafka.records.arrays import varints
from appliance.kafka.records.arrays.varints import Booleans, Bytes, Integers
from appliance.kafka.records.batch import LOG_APPEND_TIME, split
from appliance.kafka.records.decompression import decompress_records
from appliance.kafka.records.varint import read_varint

_AFTER = bytes(3 * varints.BYTES_MAX)
"""Follows the bytes of all records: up to three varints are read before their places are checked."""


class RecordMisfit(ValueError):
    """The fields of a record do not fit its length; ``at`` is its number."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


@dataclass(frozen=True, slots=True)
class Uncompressed:
    """The records of one batch: their bytes, and the place at which each ends.

    ``append_time`` is the time that the broker has given to all of them, in milliseconds.
    """

    data: bytes
    ends: Sequence[int]
    base_timestamp: int
    append_time: int | None


def uncompressed(data: bytes | memoryview, first_offset: int) -> Uncompressed:
    """The records of one batch, whose first one has this offset at the source."""
    (batch,) = split(data)
    header, plain = batch.header, decompress_records(batch)
    try:
        ends = _ends(plain, header.records)
    except IndexError:
        ends = []
    if len(ends) != header.records or (ends[-1] if ends else 0) != len(plain):
        raise misfit(first_offset)
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    return Uncompressed(plain, ends, header.base_timestamp, append_time)


def misfit(first_offset: int) -> BatchCorrupt:
    """The error of a batch whose records do not fit."""
    return BatchCorrupt(f"the records of the batch at offset {first_offset} do not fit their lengths, count or memory")


def _ends(plain: bytes, count: int) -> list[int]:
    """The places at which the records end; whether lengths are negative is left to ``fields``."""
    ends, at = [], 0
    for _ in range(count):
        low = plain[at]
        if low < 0x80:
            at += 1 + (low >> 1)
        elif (high := plain[at + 1]) < 0x80:
            at += 2 + ((low & 0x7F | high << 7) >> 1)
        else:
            size, behind = read_varint(plain, at)
            at = behind + max(size, 0)
        ends.append(at)
    return ends


@dataclass(frozen=True, slots=True)
class Places:
    """The places of a field of each record: where it begins and ends, and where it is null."""

    begins: Integers
    ends: Integers
    nulls: Booleans

    @property
    def sizes(self) -> Integers:
        """The bytes of each."""
        return self.ends - self.begins

    def of(self, chosen: Booleans | slice) -> "Places":
        """Those of some records."""
        return Places(self.begins[chosen], self.ends[chosen], self.nulls[chosen])


@dataclass(frozen=True, slots=True)
class Fields:
    """The records of several batches: the bytes of all, each one's time in milliseconds, and places in the bytes.

    ``headers`` are the places of all that follows a record's value.
    """

    data: Bytes
    timestamps: Integers
    keys: Places
    values: Places
    headers: Places

    def sizes(self) -> Integers:
        """The bytes of each record's key, value and headers."""
        return self.keys.sizes + self.values.sizes + self.headers.sizes

    def of(self, chosen: Booleans | slice) -> "Fields":
        """Those of some records."""
        if isinstance(chosen, np.ndarray) and chosen.all():
            return self
        places = (each.of(chosen) for each in (self.keys, self.values, self.headers))
        return Fields(self.data, self.timestamps[chosen], *places)


def fields(batches: Sequence[Uncompressed]) -> Fields:
    """The fields of all records of some batches."""
    data = np.frombuffer(b"".join([*(each.data for each in batches), _AFTER]), np.uint8)
    counts = [len(each.ends) for each in batches]
    first = np.cumsum([0, *(len(each.data) for each in batches)])[:-1]
    ends = np.concatenate([np.array(each.ends, np.int64) for each in batches]) + np.repeat(first, counts)
    begins = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    sizes, at = read(data, begins)
    require(at + sizes == ends)
    deltas, at = read(data, at + 1)
    _, at = read(data, at)
    keys = nullable(data, at, ends)
    values = nullable(data, keys.ends, ends)
    timestamps = deltas + np.repeat([each.base_timestamp for each in batches], counts)
    for number, each in enumerate(batches):
        if each.append_time is not None:
            timestamps[sum(counts[:number]) :][: counts[number]] = each.append_time
    return Fields(data, timestamps, keys, values, Places(values.ends, ends, np.zeros(len(ends), np.bool_)))


def read(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """The numbers at these places, and the places behind them."""
    try:
        return varints.read(data, at)
    except varints.VarintTooLong as error:
        raise RecordMisfit(error.at) from error


def nullable(data: Bytes, at: Integers, ends: Integers) -> Places:
    """The places of fields with their lengths before them at ``at``, within records that end at ``ends``."""
    require(at <= ends)
    sizes, begins = read(data, at)
    require((sizes >= -1) & (begins <= ends) & (sizes <= ends - begins))
    return Places(begins, begins + np.maximum(sizes, 0), sizes < 0)


def require(fits: Booleans) -> None:
    """Check what has to be true of each record."""
    if not fits.all():
        raise RecordMisfit(int(np.argmin(fits)))


def binary(data: Bytes, places: Places, rows: Integers) -> pa.BinaryArray:
    """The fields of records, a value for each of ``rows``: the record's number, or null if that is negative.

    All that lies between two fields is a value that nobody takes: so Arrow copies them, and not Python.
    """
    ends = np.empty(2 * len(places.begins) + 1, np.int32)
    ends[:-1:2], ends[1::2], ends[-1] = places.begins, places.ends, len(data)
    every = pa.BinaryArray.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])
    nulls = rows < 0
    if places.nulls.any():
        nulls[rows >= 0] = places.nulls[rows[rows >= 0]]
    return every.take(pa.array(2 * rows, mask=nulls))
