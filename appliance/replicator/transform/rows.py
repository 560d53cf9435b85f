"""Records as Arrow's rows for the SQL, and the rows that it returns as batches, range by range.

It returns a row for each record that it keeps, or fails on: so one that it fails on takes no other with it. The rows
have the columns alone that a statement needs: each costs Java's time, and Python's.

Header keys pass as strings whose bytes nobody has checked: Kafka demands UTF-8 of them, and takes anything.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from operator import lt
from typing import Any, NamedTuple

import pyarrow as pa

from appliance.errors import PeerError
from appliance.kafka.records.columns import BATCH_BYTES, Columns, Headers, decoded, encoded
from appliance.kafka.records.outgoing import Outgoing
from appliance.replicator.transform.ranges import ROOM_BYTES, ROW_BYTES, ROWS_AT_ONCE, WEIGHT_MAX, Range
from appliance.transform.model.statement import END, FILLER, GROWN, MARK, OPAQUE, OUTCOME, RANGE, ROOM, SALT
from appliance.transform.rows import from_opaque, headers_array, headers_of, opaque, schema_of


class Confirmed(NamedTuple):
    """A range whose mark has arrived: its number, its batches, and the offsets of the records that the SQL fails on.

    If it has ``grown``, the SQL makes more of one of its records than there is room for, and it has no batches.
    """

    number: int
    batches: Sequence[Outgoing]
    failed: Sequence[int]
    grown: bool = False


class RowWriter:
    """Gathers the rows of many ranges, of some ``columns``, with the ``salt`` in each.

    ``add`` and ``mark`` return rows for Spark once there are many. A range has a number. Each record counts as
    ``weight`` rows, or more if it is large.
    """

    def __init__(self, columns: Sequence[str], salt: str, weight: int = 1) -> None:
        self._weight = weight
        self._schema = schema_of(columns)
        self._salt = salt
        self._lists: dict[str, list[Any]] = {}
        self._count = 0
        self._clear()

    def _clear(self) -> None:
        self._lists = {name: [] for name in self._schema.names if name != SALT}
        self._count = 0

    def add(self, number: int, each: Range, batch: Outgoing) -> Iterator[pa.RecordBatch]:
        """Add the records of a batch that are in a range.

        Raises:
            BatchCorrupt: as ``decoded``.
        """
        columns = decoded(batch.data, batch.first_offset, batch.runs)
        if batch.first_offset < each.start or batch.next_offset > each.end:
            columns = columns.within(each.start, each.end)
        same = {RANGE: number, "topic": each.partition[0], "partition": each.partition[1]}
        same |= {"timestamp_type": int(batch.append_time), ROOM: self._weight * ROOM_BYTES}
        for begin in range(0, len(columns), ROWS_AT_ONCE):
            some = columns.rows(begin, begin + ROWS_AT_ONCE)
            if self._weight == 1 and some.size <= ROW_BYTES * len(some):
                self._extend(same, some)
                yield from self._full()
            else:
                yield from self._large(same, some)

    def _large(self, same: Mapping[str, Any], some: Columns) -> Iterator[pa.RecordBatch]:
        """Add records that count as several rows."""
        for at, size in enumerate(some.sizes):
            self._extend(same, some.rows(at, at + 1))
            yield from self._full()
            for _ in range(1, max(self._weight, 1 + size // ROW_BYTES)):
                self._append(same[RANGE], 0, FILLER)
                yield from self._full()

    def _extend(self, same: Mapping[str, Any], some: Columns) -> None:
        own: dict[str, Sequence[Any]] = {
            "offset": some.offsets,
            "timestamp": some.timestamps,
            "key": some.keys,
            "value": some.values,
            "headers": some.headers,
        }
        for name, held in self._lists.items():
            if name == OPAQUE:
                held.extend([opaque(headers) if headers else None for headers in some.headers])
            else:
                held.extend(own[name] if name in own else [same.get(name)] * len(some))
        self._count += len(some)

    def mark(self, number: int, each: Range) -> Iterator[pa.RecordBatch]:
        """End a range."""
        self._append(number, each.end, MARK)
        yield from self._full()

    def _append(self, number: int, offset: int, kind: int) -> None:
        """Add a row that is no record."""
        row = {RANGE: number, "offset": offset, "timestamp": 0, "headers": (), ROOM: 0, END: kind}
        for name, held in self._lists.items():
            held.append(row.get(name))
        self._count += 1

    def _full(self) -> Iterator[pa.RecordBatch]:
        if self._count >= ROWS_AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The rows that are left."""
        if self._count:
            yield pa.RecordBatch.from_arrays([*map(self._array, self._schema)], schema=self._schema)
            self._clear()

    def _array(self, field: pa.Field) -> pa.Array:
        if field.name == SALT:
            return pa.repeat(pa.scalar(self._salt), self._count)
        values = self._lists[field.name]
        return headers_array(values) if field.name == "headers" else pa.array(values, field.type)


class RowReader:
    """Reads the rows that come from Spark; the ``ranges`` are those of ``messages.encode_bounds``, in order.

    With ``stops``, the first record that fails ends its range. One that has grown although each counts as ``weight``
    rows, the most, fails.
    """

    def __init__(self, ranges: Sequence[Mapping[str, Any]], *, stops: bool, weight: int = 1) -> None:
        self._ranges = ranges
        self._is_largest = weight >= WEIGHT_MAX
        self._grown = False
        self._stops = stops
        self._number = 0
        self._last = -1
        self._held = Columns()
        self._written: list[Outgoing] = []
        self._failed: list[int] = []
        self._size = 0

    def read(self, batch: pa.RecordBatch) -> Iterator[Confirmed]:
        """The ranges whose marks are among these rows.

        Raises:
            PeerError: the rows are not those of the ranges.
        """
        outcomes = batch.column(OUTCOME).to_pylist()
        if FILLER in outcomes:
            records = [outcome != FILLER for outcome in outcomes]
            batch, outcomes = batch.filter(pa.array(records)), [*compress(outcomes, records)]
        numbers, *plain = (batch.column(name).to_pylist() for name in (RANGE, "offset", "timestamp", "key", "value"))
        offsets, timestamps, keys, values = plain
        columns, begin = Columns(offsets, timestamps, keys, values, _headers(batch)), 0
        for _ in range(outcomes.count(MARK)):
            at = outcomes.index(MARK, begin)
            self._add(numbers[begin:at], columns.rows(begin, at), outcomes[begin:at])
            yield self._ended(numbers[at], columns.offsets[at])
            begin = at + 1
        self._add(numbers[begin:], columns.rows(begin, len(columns)), outcomes[begin:])

    def _add(self, numbers: list[int], some: Columns, kept: list[int | None]) -> None:
        """Keep some rows of the range that is being read, and write them once they are many.

        ``kept`` are their outcomes: 1 if the SQL keeps the record, None if it fails on it, ``GROWN``.
        """
        if not kept:
            return
        bounds = self._bounds()
        before = max(self._last, bounds["start"] - 1)
        ascending = all(map(lt, [before, *some.offsets], some.offsets))
        own = numbers.count(self._number) == len(numbers)
        if not (own and ascending and some.offsets[-1] < bounds["end"]):
            raise PeerError("the SQL has returned rows of another range, or in another order")
        self._last = some.offsets[-1]
        if GROWN in kept:
            kept = [None if outcome == GROWN else outcome for outcome in kept]
            self._grown = not self._is_largest
        if self._grown:
            return
        if self._failed or not all(kept):
            some = self._passed(some, kept)
        self._held.add(some)
        self._size += some.size
        if self._size > BATCH_BYTES:
            self._write(bounds, len(self._held) - 1)

    def _passed(self, some: Columns, kept: list[int | None]) -> Columns:
        """The rows that the SQL keeps, as long as none has failed that ends the range."""
        if self._failed and self._stops:
            return Columns()
        if None in kept:
            self._failed += [offset for offset, keeps in zip(some.offsets, kept, strict=True) if keeps is None]
            kept = kept[: kept.index(None)] if self._stops else kept
        return Columns(*(list(compress(values, kept)) for values in _lists(some)))

    def _write(self, bounds: Mapping[str, Any], count: int) -> None:
        """Write the first rows that are kept; the last one stays until it is known what follows it."""
        held = self._held
        following = held.offsets[count] if count < len(held) else bounds["end"]
        self._written += encoded(held.rows(0, count), bounds["codec"], bounds["limit"], following)
        self._held, self._size = held.rows(count, len(held)), 0

    def _ended(self, *mark: int) -> Confirmed:
        bounds = self._bounds()
        if mark != (self._number, bounds["end"]):
            raise PeerError("the SQL has changed an end mark")
        if self._grown:
            confirmed = Confirmed(self._number, (), (), grown=True)
            self._held, self._size = Columns(), 0
        else:
            self._write(bounds, len(self._held))
            confirmed = Confirmed(self._number, self._written, self._failed[:1] if self._stops else self._failed)
        self._number, self._last, self._written, self._failed, self._grown = self._number + 1, -1, [], [], False
        return confirmed

    def _bounds(self) -> Mapping[str, Any]:
        if self._number >= len(self._ranges):
            raise PeerError("the SQL has returned rows after the last end mark")
        return self._ranges[self._number]


def _lists(columns: Columns) -> tuple[list[Any], ...]:
    return columns.offsets, columns.timestamps, columns.keys, columns.values, columns.headers


def _headers(batch: pa.RecordBatch) -> list[Headers]:
    """The headers of each row."""
    if OPAQUE not in batch.schema.names:
        return headers_of(batch.column("headers"))
    return [*map(from_opaque, batch.column(OPAQUE).to_pylist())]
