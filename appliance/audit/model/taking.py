"""The rows of the audit table that follow from a range of a lane's log, and the state after them. Pure."""

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from appliance.audit.model.entries import ANY_DAY, Entry, LogRange
from appliance.audit.model.rows import AuditRow, Kind, is_moved, is_news, is_old, row_end, row_of
from appliance.audit.model.state import AuditState, LaneProgress
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, key_and_value
from appliance.link.model.checkpoint import OPERATOR, Gap, Owner
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.json_records import fields, partition_of, reading
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.position import Position

_NO_PARTITION = Partition("", 0)

_CACHED_MAX = 1024
"""Longest key that is kept with its kind, in bytes: those of ours are shorter."""


def take(
    state: AuditState,
    lane: int,
    read: LogRange,
    day: int,
    row_ms: int,
    copy_of: Callable[[str], str],
    waits: bool = True,
) -> list[AuditRow]:
    """Take the entries of a lane that follow, up to the first one of another day; returns the rows.

    A row covers at most ``row_ms``; 0: one transaction. If it ``waits``, a change of the link's layout is taken when
    all lanes are read up to it: a position counts where the partition was before it counts where it went.
    """
    at = (entry.record.offset for entry in read.entries if day not in (ANY_DAY, entry.day))
    read = read.before(next(at, read.following))
    progress = state.lanes.get(lane, LaneProgress())
    progress = replace(progress, hole_at=max(progress.hole_at, read.hole_at), waits_for=0)
    taking = _Taking(state, lane, progress, row_ms, copy_of)
    read = read.before(taking.take(read.entries, waits))
    leader_epoch = max(progress.leader_epoch, read.leader_epoch)
    state.lanes[lane] = replace(taking.progress, read_to=read.following, leader_epoch=leader_epoch)
    return taking.rows


@dataclass(slots=True)
class _Taking:
    """The rows of one range of a lane: only the last position of a row's time is decoded."""

    state: AuditState
    lane: int
    progress: LaneProgress
    row_ms: int
    copy_of: Callable[[str], str]
    rows: list[AuditRow] = field(default_factory=list)
    _runs: dict[tuple[int, int], str | None] = field(init=False)
    _open: dict[Partition, list[Entry]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._runs = {self.progress.producer: self.progress.run}

    def take(self, entries: Sequence[Entry], waits: bool) -> int:
        """Add the rows of these entries, up to a change of the layout that has to wait; returns its offset."""
        end = sys.maxsize
        for number, entry in enumerate(entries):
            kind, partition = _key(entry.record)
            if waits and self._has_to_wait(kind, entry):
                entries, end = entries[:number], entry.record.offset
                break
            if kind == "position":
                self._position(partition, entry)
            elif kind == "gap":
                self._gap(partition, entry)
            elif kind == "owner":
                self._owner(entry)
            elif kind == "layout":
                self._layout(entry)
        self._end_all()
        self.rows = [row._replace(run=self._run(row)) for row in self.rows]
        return end

    def _has_to_wait(self, kind: str, entry: Entry) -> bool:
        """True at the first record of a change of the layout while other lanes are not read up to it."""
        number = 0
        if kind == "layout":
            layout = decode(entry.record)
            number = layout.number if isinstance(layout, LayoutRecord) and not layout.changing else 0
        elif entry.producer == self.progress.coming[1:] and kind in ("position", "gap"):
            number = self.progress.coming[0]
        if number <= self.progress.layout or not self.state.is_left_behind(self.lane, number):
            return False
        self.progress = replace(self.progress, waits_for=number)
        return True

    def _run(self, row: AuditRow) -> str | None:
        """The run of a row. An owner's name follows the positions of its first transaction.

        A change of lanes writes positions again, by the operator: another run has copied up to there.
        """
        run = self._runs.get((row.producer_id, row.producer_epoch))
        return None if run == OPERATOR and row.kind is Kind.COPIED else run

    def _position(self, partition: Partition, entry: Entry) -> None:
        entries = self._open.setdefault(partition, [])
        if entries and self._time(entries[-1]) != self._time(entry):
            self._end(partition)
            entries = self._open.setdefault(partition, [])
        entries.append(entry)

    def _time(self, entry: Entry) -> tuple[int, int, int]:
        at = entry.committed // self.row_ms if self.row_ms else entry.record.offset
        return at, *entry.producer

    def _gap(self, partition: Partition, entry: Entry) -> None:
        """A gap ends a row, and the next one names it: the position that leaves it lies before it in the log.

        A change of lanes deletes a gap in one lane, and writes it again in another: that is no news.
        """
        gap = decode(entry.record) if key_and_value(entry.record.body)[1] is not None else None
        if not isinstance(gap, Gap):
            return
        entries = self._open.pop(partition, [])
        if entries and entries[-1].committed != entry.committed:
            self._add(partition, entries)  # compaction has removed the position that leaves the gap
            entries = []
        self._add(partition, entries[:-1])
        if (before := self.state.partitions.get(partition)) and is_news(before, self.lane, gap.source_id, gap.next):
            cause = "; ".join(filter(None, [before.cause, gap.cause]))
            self.state.partitions[partition] = before._replace(cause=cause)
        self._add(partition, entries[-1:])

    def _owner(self, entry: Entry) -> None:
        remembered = decode(entry.record)
        if isinstance(remembered, tuple) and isinstance(remembered[1], Owner):
            producer, run = entry.producer, remembered[1].run
            self.progress, self._runs[producer] = replace(self.progress, producer=producer, run=run), run

    def _layout(self, entry: Entry) -> None:
        remembered = decode(entry.record)
        if isinstance(remembered, LayoutRecord):
            self._end_all()  # the positions before it are of the layout before it
            if remembered.changing:
                self.progress = replace(self.progress, coming=(remembered.number, *entry.producer))
            else:
                self.progress = replace(self.progress, layout=remembered.number, layout_at=entry.record.offset)
                self.progress = replace(self.progress, coming=LaneProgress().coming)

    def _end_all(self) -> None:
        for partition in list(self._open):
            self._end(partition)

    def _end(self, partition: Partition) -> None:
        self._add(partition, self._open.pop(partition))

    def _add(self, partition: Partition, entries: Sequence[Entry]) -> None:
        """Add the row that ends with the last of these entries."""
        if not entries:
            return
        last, before = entries[-1], self.state.partitions.get(partition)
        if len(entries) > 1 and (before is None or before.forgotten or before.is_lost):
            self._add(partition, entries[:1])  # copying begins there
            self._add(partition, entries[1:])
            return
        remembered = decode(last.record)
        if not isinstance(remembered, tuple) or not isinstance(remembered[1], Position):
            if before is not None and before.lane == self.lane and last.record.offset > before.offset:
                self._add(partition, entries[:-1])
                end, at = self.state.partitions[partition], last.record.offset
                end = end._replace(forgotten=True, offset=at, layout=self.progress.layout)
                end = end._replace(is_sure=self.progress.is_sure)
                self.state.partitions[partition] = end
            return
        layout = self.progress.layout_of(last.producer)
        now = row_end(remembered[1], self.lane, last.record.offset, layout)._replace(is_sure=self.progress.is_sure)
        if is_moved(before, now):
            self.state.partitions[partition] = now
            return
        if is_old(before, now):
            return
        whole = before is not None and before.lane == self.lane and before.offset >= self.progress.hole_at
        row = row_of(partition, self.copy_of(partition[0]), before, now, last, len(entries) if whole else None)
        if row is not None:
            cause = row.cause or (self.state.beginning if row.kind is Kind.UNAUDITED else None)
            self.rows.append(row._replace(cause=cause))
        elif before is not None and before.cause:
            now = now._replace(cause=before.cause)
        self.state.partitions[partition] = now


@functools.lru_cache(maxsize=65536)
def _kind_of(key_bytes: bytes) -> tuple[str, Partition]:
    key = fields(key_bytes)
    if "lane" in key:
        return "owner", _NO_PARTITION
    if "layout" in key:
        return "layout", _NO_PARTITION
    if "topic" in key:
        return "gap" if "gap" in key else "position", partition_of(key)
    return "other", _NO_PARTITION


def _key(record: Record) -> tuple[str, Partition]:
    with reading("the positions topic", record):
        key = key_and_value(record.body)[0] or b"{}"
        return _kind_of(key) if len(key) <= _CACHED_MAX else _kind_of.__wrapped__(key)
