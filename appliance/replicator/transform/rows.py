"""Records as Arrow's rows for the SQL, and the rows that it returns as batches, range by range.

Header keys pass as strings whose bytes nobody has checked: Kafka demands UTF-8 of them, and takes anything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from appliance.errors import PeerError
from appliance.kafka.records.columns import BATCH_BYTES, Columns, decoded, encoded
from appliance.kafka.records.outgoing import Outgoing
from appliance.replicator.transform.ranges import Range
from appliance.transform.rows import SCHEMA, headers_array, headers_of

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


class NotARecord(PeerError):
    """The SQL has returned something that no record can be; ``offset`` is the source's."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


class RowReader:
    """Reads the rows that come from Spark; the ``ranges`` are those of ``messages.encode_bounds``, in order."""

    def __init__(self, ranges: Sequence[Mapping[str, Any]]) -> None:
        self._ranges = ranges
        self.number = 0
        self._held = Columns()
        self._written: list[Outgoing] = []
        self._size = 0

    def read(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Sequence[Outgoing]]]:
        """The ranges whose marks are among these rows, by number, each with its batches.

        Raises:
            PeerError: the rows are not those of the ranges.
        """
        topics, partitions, offsets = (batch.column(number).to_pylist() for number in range(3))
        headers, ends = headers_of(batch.column(7)), batch.column(8).to_pylist()
        keys, values = batch.column(5).to_pylist(), batch.column(6).to_pylist()
        columns = Columns(offsets, batch.column(3).to_pylist(), keys, values, headers)
        begin = 0
        for at in [number for number, end in enumerate(ends) if end is not None]:
            self._add(topics, partitions, columns, begin, at)
            yield self.number, self._ended((topics[at], partitions[at], offsets[at], ends[at]))
            self.number += 1
            begin = at + 1
        self._add(topics, partitions, columns, begin, len(offsets))

    def _add(self, topics: list[str], partitions: list[int], columns: Columns, begin: int, end: int) -> None:
        """Keep some rows of the range that is being read, and write them once they are many."""
        if begin == end:
            return
        if self.number >= len(self._ranges):
            raise PeerError("the SQL has returned rows after the last end mark")
        bounds, some = self._ranges[self.number], columns.rows(begin, end)
        last = self._held.offsets[-1] if self._held.offsets else bounds["start"] - 1
        ascending = all(a < b for a, b in zip([last, *some.offsets], some.offsets, strict=False))
        own = set(topics[begin:end]) == {bounds["topic"]} and set(partitions[begin:end]) == {bounds["partition"]}
        if not (own and ascending and some.offsets[-1] < bounds["end"]):
            raise PeerError("the SQL has returned rows of another range, or in another order")
        _require_records(some)
        for held, more in zip(_lists(self._held), _lists(some), strict=True):
            held.extend(more)
        self._size += sum(some.sizes)
        if self._size > BATCH_BYTES:
            self._write(bounds, len(self._held) - 1)

    def _write(self, bounds: Mapping[str, Any], count: int) -> None:
        """Write the first rows that are kept; the last one stays until it is known what follows it."""
        held = self._held
        following = held.offsets[count] if count < len(held) else bounds["end"]
        self._written += encoded(held.rows(0, count), bounds["codec"], bounds["limit"], following)
        self._held, self._size = held.rows(count, len(held)), 0

    def _ended(self, mark: tuple[str, int, int, int]) -> Sequence[Outgoing]:
        if self.number >= len(self._ranges):
            raise PeerError("the SQL has returned more end marks than there are ranges")
        bounds = self._ranges[self.number]
        if mark != (bounds["topic"], bounds["partition"], bounds["start"], bounds["end"]):
            raise PeerError("the SQL has changed an end mark")
        self._write(bounds, len(self._held))
        written, self._written = self._written, []
        return written


def _lists(columns: Columns) -> tuple[list[Any], ...]:
    return columns.offsets, columns.timestamps, columns.keys, columns.values, columns.headers


def _require_records(columns: Columns) -> None:
    """Check that each row is a record.

    Raises:
        NotARecord: one is not.
    """
    if None in columns.timestamps:
        raise NotARecord(columns.offsets[columns.timestamps.index(None)], "its timestamp is null")  # type: ignore[arg-type]
    for offset, headers in zip(columns.offsets, columns.headers, strict=True):
        if headers and any(name is None for name, _ in headers):
            raise NotARecord(offset, "a header's key is null")
