"""Records as Arrow's rows for the SQL, and the rows that it returns as batches, range by range.

It returns a row for each record, with what has become of it: so one that it fails on takes no other with it.

Header keys pass as strings whose bytes nobody has checked: Kafka demands UTF-8 of them, and takes anything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import pyarrow as pa

from appliance.errors import PeerError
from appliance.kafka.records.columns import BATCH_BYTES, Columns, decoded, encoded
from appliance.kafka.records.outgoing import Outgoing
from appliance.replicator.transform.ranges import Range
from appliance.transform.rows import SCHEMA, headers_array, headers_of


class Confirmed(NamedTuple):
    """A range whose mark has arrived: its number, its batches, and the offsets of the records that the SQL fails on."""

    number: int
    batches: Sequence[Outgoing]
    failed: Sequence[int]


_ROWS, _BYTES = 5_000, 2 * 1024 * 1024
"""Bounds of the rows that Spark gets at once."""


class RowWriter:
    """Gathers the rows of many ranges, with the ``salt`` in each.

    ``add`` and ``mark`` return rows for Spark once there are many.
    """

    def __init__(self, salt: str | None = None) -> None:
        self._salt = salt
        self._lists: list[list[Any]] = [[] for _ in SCHEMA.names[:-1]]
        self._bytes = 0

    def add(self, each: Range, batch: Outgoing) -> Iterator[pa.RecordBatch]:
        """Add the records of a batch that are in a range.

        Raises:
            BatchCorrupt: as ``decoded``.
        """
        columns = decoded(batch.data, batch.first_offset, batch.runs)
        if batch.first_offset < each.start or batch.next_offset > each.end:
            columns = columns.within(each.start, each.end)
        for begin in range(0, len(columns), _ROWS):
            some = columns.rows(begin, begin + _ROWS)
            count = len(some)
            names: list[list[Any]] = [[name] * count for name in each.partition]
            types = [int(batch.append_time)] * count
            contents: tuple[Iterable[Any], ...] = some.keys, some.values, some.headers
            fields = *names, some.offsets, some.timestamps, types, *contents, [None] * count
            for held, more in zip(self._lists, fields, strict=True):
                held.extend(more)
            self._bytes += sum(some.sizes)
            yield from self._full()

    def mark(self, each: Range) -> Iterator[pa.RecordBatch]:
        """End a range."""
        topic, partition = each.partition
        row = (topic, partition, each.start, 0, 0, None, None, None, each.end)
        for held, value in zip(self._lists, row, strict=True):
            held.append(value)
        yield from self._full()

    def _full(self) -> Iterator[pa.RecordBatch]:
        if len(self._lists[0]) >= _ROWS or self._bytes >= _BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The rows that are left."""
        if not self._lists[0]:
            return
        *plain, headers, ends = self._lists
        arrays = [pa.array(values, kind.type) for values, kind in zip(plain, SCHEMA, strict=False)]
        salts = pa.array([self._salt] * len(ends), pa.string())
        arrays += [headers_array(headers), pa.array(ends, pa.int64()), salts]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        self._lists, self._bytes = [[] for _ in self._lists], 0


class RowReader:
    """Reads the rows that come from Spark; the ``ranges`` are those of ``messages.encode_bounds``, in order.

    With ``stops``, the first record that fails ends its range.
    """

    def __init__(self, ranges: Sequence[Mapping[str, Any]], *, stops: bool) -> None:
        self._ranges = ranges
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
        topics, partitions, offsets = (batch.column(number).to_pylist() for number in range(3))
        headers, ends, kept = headers_of(batch.column(7)), batch.column(8).to_pylist(), batch.column(9).to_pylist()
        keys, values = batch.column(5).to_pylist(), batch.column(6).to_pylist()
        columns = Columns(offsets, batch.column(3).to_pylist(), keys, values, headers)
        begin = 0
        for at in [number for number, end in enumerate(ends) if end is not None]:
            self._add(topics[begin:at], partitions[begin:at], columns.rows(begin, at), kept[begin:at])
            yield self._ended((topics[at], partitions[at], offsets[at], ends[at]))
            begin = at + 1
        self._add(topics[begin:], partitions[begin:], columns.rows(begin, len(offsets)), kept[begin:])

    def _add(self, topics: list[str], partitions: list[int], some: Columns, kept: list[bool | None]) -> None:
        """Keep some rows of the range that is being read, and write them once they are many."""
        if not kept:
            return
        bounds = self._bounds()
        before = max(self._last, bounds["start"] - 1)
        ascending = all(a < b for a, b in zip([before, *some.offsets], some.offsets, strict=False))
        own = set(topics) == {bounds["topic"]} and set(partitions) == {bounds["partition"]}
        if not (own and ascending and some.offsets[-1] < bounds["end"]):
            raise PeerError("the SQL has returned rows of another range, or in another order")
        self._last = some.offsets[-1]
        if not all(kept):
            some = self._passed(some, kept)
        for held, more in zip(_lists(self._held), _lists(some), strict=True):
            held.extend(more)
        self._size += sum(some.sizes)
        if self._size > BATCH_BYTES:
            self._write(bounds, len(self._held) - 1)

    def _passed(self, some: Columns, kept: list[bool | None]) -> Columns:
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

    def _ended(self, mark: tuple[str, int, int, int]) -> Confirmed:
        bounds = self._bounds()
        if mark != (bounds["topic"], bounds["partition"], bounds["start"], bounds["end"]):
            raise PeerError("the SQL has changed an end mark")
        self._write(bounds, len(self._held))
        confirmed = Confirmed(self._number, self._written, self._failed[:1] if self._stops else self._failed)
        self._number, self._last, self._written, self._failed = self._number + 1, -1, [], []
        return confirmed

    def _bounds(self) -> Mapping[str, Any]:
        if self._number >= len(self._ranges):
            raise PeerError("the SQL has returned rows after the last end mark")
        return self._ranges[self._number]


def _lists(columns: Columns) -> tuple[list[Any], ...]:
    return columns.offsets, columns.timestamps, columns.keys, columns.values, columns.headers
