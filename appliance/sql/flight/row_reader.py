"""The rows that the SQL returns, as batches, range by range.

It returns a row for each record that it keeps, or fails on: so one that it fails on takes no other with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from appliance.engine.model.ranges import WEIGHT_MAX
from appliance.errors import PeerError
from appliance.kafka.records.arrays.encoding import Columns, batches, cuts
from appliance.kafka.records.arrays.headers import header_bytes
from appliance.kafka.records.arrays.varints import Booleans, Integers
from appliance.kafka.records.decompression import LIMIT
from appliance.kafka.records.outgoing import Outgoing
from appliance.sql.model.statement import FILLER, GROWN, MARK, OPAQUE, OUTCOME, PASSES, RANGE, TEXTS

_FAILED = -1
"""Stands for null among the outcomes."""


def _none() -> Integers:
    """No numbers."""
    return np.zeros(0, np.int64)


class Confirmed(NamedTuple):
    """A range whose mark has arrived: its number, its batches, and the offsets of the records that the SQL fails on.

    ``runs`` are the batches', as in a message. If it has ``grown``, the SQL makes more of one of its records than there
    is room for, and it has no batches.
    """

    number: int
    batches: Sequence[Outgoing]
    runs: Sequence[bytes]
    failed: Sequence[int]
    grown: bool = False


@dataclass(frozen=True, slots=True)
class _Section:
    """The rows of the range ``number`` among those at hand, by their numbers.

    ``kept`` are to be written now, in batches of which each begins at one of the places ``begins`` in them. The SQL
    fails on ``failed``. A section that has not ended has a ``rest``, whose rows wait for more.
    """

    number: int
    kept: Integers
    begins: Sequence[int] = ()
    failed: Integers = field(default_factory=_none)
    grown: bool = False
    rest: slice | None = None


class RowReader:
    """Reads the rows that come from Spark; the ``ranges`` are those of ``messages.encode_bounds``, in order.

    With ``stops``, the first record that fails ends its range. One that has grown although each counts as ``weight``
    rows, the most, fails.
    """

    def __init__(self, ranges: Sequence[Mapping[str, Any]], *, stops: bool, weight: int = 1) -> None:
        self._ranges = ranges
        self._starts, self._ends = (np.array([each[name] for each in ranges], np.int64) for name in ("start", "end"))
        self._is_largest = weight >= WEIGHT_MAX
        self._stops = stops
        self._number = 0
        self._last = -1
        self._rest: pa.RecordBatch | None = None
        self._written: list[tuple[Outgoing, bytes]] = []
        self._failed: list[int] = []

    def read(self, batch: pa.RecordBatch) -> Iterator[Confirmed]:
        """The ranges whose marks are among these rows."""
        outcomes = _integers(batch, OUTCOME)
        if FILLER in outcomes:
            own = outcomes != FILLER
            batch, outcomes = batch.filter(pa.array(own)), outcomes[own]
        if not len(batch):
            return
        self._check(_integers(batch, RANGE), _integers(batch, "offset"), outcomes == MARK)
        rows = pa.concat_batches([self._rest, batch]) if self._rest else batch
        columns = _columns(rows)
        sections = [*self._sections(_integers(rows, OUTCOME), columns.sizes())]
        written = iter(self._batches(columns, sections))
        for section in sections:
            self._failed += columns.offsets[section.failed].tolist()
            self._written += [next(written) for _ in section.begins]
            if len(self._written) > 1 and sum(len(each.data) for each, _ in self._written) > LIMIT:
                raise PeerError(f"the SQL makes more than {LIMIT} bytes of a range, which is asked for again in parts")
            if section.rest is None:
                yield self._confirmed(section)
        last = sections[-1].rest
        self._rest = rows.slice(last.start, last.stop - last.start) if last else None

    def _check(self, numbers: Integers, offsets: Integers, marks: Booleans) -> None:
        """Check that these rows follow those before."""
        expected = self._number + np.cumsum(marks) - marks
        if expected[-1] >= len(self._ranges):
            raise PeerError("the SQL has returned rows after the last end mark")
        starts, ends, own = self._starts[expected], self._ends[expected], numbers == expected
        follows_mark = np.concatenate([[self._last < 0], marks[:-1]])
        before = np.where(follows_mark, starts - 1, np.concatenate([[self._last], offsets[:-1]]))
        if not (own & (before < offsets) & (offsets < ends))[~marks].all():
            raise PeerError("the SQL has returned rows of another range, or in another order")
        if not (own & (offsets == ends))[marks].all():
            raise PeerError("the SQL has changed an end mark")
        self._last = -1 if marks[-1] else int(offsets[-1])

    def _sections(self, outcomes: Integers, sizes: Integers) -> Iterator[_Section]:
        """The sections of these rows, in order."""
        number, begin = self._number, 0
        for end in np.flatnonzero(outcomes == MARK).tolist():
            yield self._section(number, outcomes[begin:end], sizes, begin, ended=True)
            number, begin = number + 1, end + 1
        if begin < len(outcomes):
            yield self._section(number, outcomes[begin:], sizes, begin, ended=False)

    def _section(self, number: int, outcomes: Integers, sizes: Integers, begin: int, *, ended: bool) -> _Section:
        """The section of rows with these outcomes, of which the first has the number ``begin``."""
        failed, grown = begin + np.flatnonzero(outcomes == _FAILED), begin + np.flatnonzero(outcomes == GROWN)
        if self._is_largest:
            failed, grown = np.sort(np.concatenate([failed, grown])), _none()
        if len(grown):
            return _Section(number, _none(), grown=True, rest=None if ended else slice(grown[0], grown[0] + 1))
        stop = begin + len(outcomes)
        if self._stops and len(failed):
            failed, stop = failed[:1], int(failed[0]) + 1
        kept = begin + np.flatnonzero(outcomes[: stop - begin] == PASSES)
        begins = cuts(sizes[kept], self._ranges[number]["limit"])
        if ended:
            return _Section(number, kept, begins, failed)
        # More records may come for the last batch.
        first = int(kept[begins[-1]]) if len(begins) > 1 else begin
        return _Section(number, kept[kept < first], begins[:-1], failed[failed < first], rest=slice(first, stop))

    def _batches(self, columns: Columns, sections: Sequence[_Section]) -> Iterator[tuple[Outgoing, bytes]]:
        """The batches of these sections with their runs, in order."""
        kept = np.concatenate([section.kept for section in sections])
        firsts = np.cumsum([0, *(len(section.kept) for section in sections)]).tolist()
        begins = [first + at for first, section in zip(firsts, sections, strict=False) for at in section.begins]
        if not begins:
            return
        codecs = [self._ranges[section.number]["codec"] for section in sections for _ in section.begins]
        following = [offset for section in sections for offset in self._following(columns.offsets, section)]
        chosen, ends = columns.of(kept), [*begins[1:], len(kept)]
        encoded = batches(chosen, begins, codecs)
        for data, first, end, after in zip(encoded, begins, ends, following, strict=True):
            offsets, newest = chosen.offsets[first:end], int(chosen.timestamps[first:end].max())
            yield Outgoing(data, end - first, int(offsets[0]), after, newest, raw=False), _runs(offsets)

    def _following(self, offsets: Integers, section: _Section) -> list[int]:
        """The source offset that follows each batch of a section."""
        if not section.begins:
            return []
        last = self._ranges[section.number]["end"] if section.rest is None else int(offsets[section.rest.start])
        return [*offsets[section.kept[[*section.begins[1:]]]].tolist(), last] if section.begins[1:] else [last]

    def _confirmed(self, section: _Section) -> Confirmed:
        written, failed = self._written, self._failed
        self._number, self._written, self._failed = self._number + 1, [], []
        if section.grown:
            return Confirmed(section.number, (), (), (), grown=True)
        return Confirmed(section.number, [batch for batch, _ in written], [runs for _, runs in written], failed)


def _integers(rows: pa.RecordBatch, name: str) -> Integers:
    """A column of numbers, ``_FAILED`` where it is null."""
    column = rows.column(name)
    filled = column.fill_null(_FAILED) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.int64)


def _columns(rows: pa.RecordBatch) -> Columns:
    opaque = OPAQUE in rows.schema.names
    headers = rows.column(OPAQUE) if opaque else header_bytes(rows.column("headers"))
    offsets, timestamps = _integers(rows, "offset"), _integers(rows, "timestamp")
    keys, values = (rows.column(name).view(pa.binary()) for name in TEXTS.values())
    return Columns(offsets, timestamps, keys, values, headers)


def _runs(offsets: Integers) -> bytes:
    """The runs of ascending offsets, as in a message; none if there is only one."""
    begins = np.concatenate([[0], np.flatnonzero(np.diff(offsets) != 1) + 1])
    if len(begins) == 1:
        return b""
    return np.stack([offsets[begins], np.diff(np.append(begins, len(offsets)))], axis=1).tobytes()
