"""Records as Arrow's rows for the SQL. They have the columns alone that a statement needs: each costs Java's time.

Header keys pass as strings whose bytes nobody has checked: Kafka demands UTF-8 of them, and takes anything.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from appliance.engine.model.ranges import ROOM_BYTES, ROW_BYTES, Range
from appliance.errors import BatchCorrupt
from appliance.kafka.records.arrays.columns import offsets_of
from appliance.kafka.records.arrays.decoding import (
    Fields,
    RecordMisfit,
    Uncompressed,
    binary,
    fields,
    misfit,
    uncompressed,
)
from appliance.kafka.records.arrays.headers import check_headers, header_lists, opaque_headers
from appliance.kafka.records.arrays.varints import Booleans, Integers
from appliance.kafka.records.outgoing import Outgoing
from appliance.spark.configuration import ROWS_AT_ONCE
from appliance.sql.model.statement import END, FILLER, MARK, OPAQUE, RANGE, SALT, TEXTS
from appliance.sql.rows import schema_of

_GATHERED_BYTES = 2 * 1024 * 1024
"""Uncompressed bytes from which on records become rows: what few records cost, thousands cost together."""

_LAID_OUT_ROWS = 25 * ROWS_AT_ONCE
"""Rows that are laid out at once, and those of a record more: all are millions where each record counts as many."""

_FILLER, _MARK = -1, -2
"""Rows that are no records."""


class RangeDamaged(BatchCorrupt):
    """The records of the range ``number`` cannot be read from ``offset`` on."""

    def __init__(self, number: int, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number
        self.offset = offset


_NOTHING = Uncompressed(b"", (), 0, None)


@dataclass(frozen=True, slots=True)
class _Part:
    """A batch of a range with its records, or the end of a range."""

    number: int
    range: Range
    batch: Outgoing | None = None
    records: Uncompressed = _NOTHING

    def offsets(self) -> Integers:
        """The source offset of each record."""
        return offsets_of(self.batch) if self.batch is not None else np.zeros(0, np.int64)


class RowWriter:
    """Gathers the rows of many ranges, of some ``columns``, with the ``salt`` in each.

    ``add`` and ``mark`` return rows for Spark once there are many. A range has a number. Each record counts as
    ``weight`` rows, or more if it is large.
    """

    def __init__(self, columns: Sequence[str], salt: str, weight: int = 1) -> None:
        self._schema = schema_of(columns)
        self._salt = salt
        self._weight = weight
        self._parts: list[_Part] = []
        self._size = 0

    def add(self, number: int, each: Range, batch: Outgoing) -> Iterator[pa.RecordBatch]:
        """Add the records of a batch that are in a range; RangeDamaged if it, or one before it, cannot be read."""
        try:
            records = uncompressed(batch.data, batch.first_offset)
            if len(records.ends) != batch.records:
                raise misfit(batch.first_offset)
        except BatchCorrupt as error:
            raise RangeDamaged(number, batch.first_offset, str(error)) from error
        self._parts.append(_Part(number, each, batch, records))
        self._size += len(records.data)
        if self._size >= _GATHERED_BYTES:
            yield from self.rest()

    def mark(self, number: int, each: Range) -> Iterator[pa.RecordBatch]:
        """End a range."""
        self._parts.append(_Part(number, each))
        if len(self._parts) >= ROWS_AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The rows that are left."""
        parts, self._parts, self._size = self._parts, [], 0
        if not parts:
            return
        try:
            for rows in _laid_out(parts, self._weight):
                if OPAQUE in self._schema.names and "headers" not in self._schema.names:
                    check_headers(rows.records)
                arrays = [rows.array(name, self._salt) for name in self._schema.names]
                gathered = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
                for at in range(0, len(gathered), ROWS_AT_ONCE):
                    yield gathered.slice(at, ROWS_AT_ONCE)
        except RecordMisfit as error:
            raise _damaged(parts) from error


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of some parts: ``offsets`` are those of the ``records``.

    ``numbers`` has the record of each row, or ``_FILLER``, or ``_MARK``; ``owners`` its part.
    """

    parts: Sequence[_Part]
    weight: int
    records: Fields
    offsets: Integers
    numbers: Integers
    owners: Integers

    def array(self, name: str, salt: str) -> pa.Array:
        """The column of this name; RecordMisfit if a record's headers do not fit its length."""
        match name:
            case "headers":
                return header_lists(self.records, self.numbers)
            case _ if name == TEXTS["key"]:
                return binary(self.records.data, self.records.keys, self.numbers).view(pa.string())
            case _ if name == TEXTS["value"]:
                return binary(self.records.data, self.records.values, self.numbers).view(pa.string())
            case _ if name == OPAQUE:
                return opaque_headers(self.records, self.numbers)
            case _ if name == SALT:
                return pa.repeat(pa.scalar(salt), len(self.numbers))
            case _ if name == END:
                return pa.array(np.where(self.numbers == _MARK, MARK, FILLER), mask=self._is_record)
            case _:
                return self._plain(name)

    @property
    def _is_record(self) -> Booleans:
        return self.numbers >= 0

    def _plain(self, name: str) -> pa.Array:
        """A column of numbers, which is never null, or of one that all records of a part share."""
        if name == RANGE:
            return self._shared([part.number for part in self.parts], pa.int32(), everywhere=True)
        if name == "topic":
            return self._shared([part.range.partition[0] for part in self.parts], pa.string())
        if name == "partition":
            return self._shared([part.range.partition[1] for part in self.parts], pa.int32())
        if name == "timestamp_type":
            times = [int(part.batch is not None and part.batch.append_time) for part in self.parts]
            return self._shared(times, pa.int32())
        values = np.zeros(len(self.numbers), np.int64)
        if name == "offset":
            values[self._is_record] = self.offsets
            is_mark = self.numbers == _MARK
            values[is_mark] = np.array([part.range.end for part in self.parts])[self.owners[is_mark]]
        elif name == "timestamp":
            values[self._is_record] = self.records.timestamps
        else:
            values[self._is_record] = self.weight * ROOM_BYTES
        return pa.array(values)

    def _shared(self, values: Sequence[Any], kind: pa.DataType, *, everywhere: bool = False) -> pa.Array:
        chosen = pa.array(self.owners) if everywhere else pa.array(self.owners, mask=~self._is_record)
        return pa.array(values, kind).take(chosen)


def _laid_out(parts: Sequence[_Part], weight: int) -> Iterator[_Rows]:
    """The rows of the parts: a record in its range, then the fillers that it counts as, and the mark of each end.

    There are ``_LAID_OUT_ROWS`` at once. RecordMisfit if the fields of a record do not fit its length.
    """
    every, offsets = fields([part.records for part in parts]), np.concatenate([part.offsets() for part in parts])
    owners = np.repeat(np.arange(len(parts)), [len(part.records.ends) for part in parts])
    starts, ends = (
        np.array(each) for each in zip(*((part.range.start, part.range.end) for part in parts), strict=True)
    )
    inside = (offsets >= starts[owners]) & (offsets < ends[owners])
    records, offsets, owners = every.of(inside), offsets[inside], owners[inside]
    marks = np.array([part.batch is None for part in parts])
    item_owners = np.repeat(np.arange(len(parts)), np.bincount(owners, minlength=len(parts)) + marks)
    is_mark = marks[item_owners]
    spans = np.ones(len(is_mark), np.int64)
    spans[~is_mark] = np.maximum(weight, 1 + records.sizes() // ROW_BYTES)
    before = np.cumsum(spans) - spans
    begins, count = np.flatnonzero(np.diff(before // _LAID_OUT_ROWS, prepend=-1)).tolist(), 0
    for first, end in itertools.pairwise([*begins, len(spans)]):
        own, of_marks = spans[first:end], is_mark[first:end]
        numbers = np.full(own.sum(), _FILLER)
        numbers[np.cumsum(own) - own] = np.where(of_marks, _MARK, np.cumsum(~of_marks) - 1)
        some = slice(count, count := count + int((~of_marks).sum()))
        yield _Rows(parts, weight, records.of(some), offsets[some], numbers, np.repeat(item_owners[first:end], own))


def _damaged(parts: Sequence[_Part]) -> RangeDamaged:
    """The error of the first batch among the parts whose records do not fit."""
    for part in (*parts, max(parts, key=lambda part: len(part.records.data))):
        try:
            records = fields([part.records])
            header_lists(records, np.arange(len(records.timestamps)))
        except RecordMisfit:
            break  # else all together have too many headers, and the largest part has most
    first = part.batch.first_offset if part.batch else part.range.start
    return RangeDamaged(part.number, first, str(misfit(first)))
