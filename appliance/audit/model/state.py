"""The progress of the audit in each lane's log and each source partition, which is stored in each file. Pure."""

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from appliance.audit.model.entries import Entry, Stretch
from appliance.audit.model.rows import AuditRow, Kind, Known, is_moved, is_news, is_old, known_of, row_of, untold_row
from appliance.audit.model.starts import NO_PRODUCER, NO_STARTS, Starts
from appliance.errors import BatchCorrupt, PeerError
from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.kafka.records.records import key_and_value
from appliance.link.model.checkpoint import OPERATOR, Gap, Owner
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.position import Position

DAY_MS = 86_400_000
ANY_DAY = -1

_ANEW = "the positions topic was made anew"
_BEFORE = "copied before the audit began"
_NOT_READ_AGAIN = -2
"""The offset of a position that earlier rows count, and that the log may hold no more."""


@dataclass(frozen=True, slots=True)
class LaneKnown:
    """A lane's log, read up to ``read_to``; ``run`` is that of the producer that last left an owner's name there.

    ``hole_at`` is the offset before which compaction has last removed something. ``layout`` is the number of the link's
    layout there, and ``starts`` are those of the lane. After the log lost its end, it is read once more before offset
    ``again``; ``cut`` are the starts that were read before, and ``mark`` is that of the newest start read since.
    ``leader_epoch`` is at least that of the last batch read, -1 if unknown.
    """

    read_to: int = -1
    hole_at: int = -1
    producer: tuple[int, int] = (-1, -1)
    run: str | None = None
    layout: int = 0
    starts: Starts = NO_STARTS
    again: int = -1
    cut: Starts | None = None
    mark: tuple[int, int] = NO_PRODUCER
    leader_epoch: int = -1


class Unsettled(NamedTuple):
    """A partition whose next row has no known beginning yet: the newest position that was ``found`` in the log again.

    Its log may have lost its end once more before anything new was read; then that beginning is unknown for good.
    """

    found: Known | None = None
    is_unknown: bool = False


@dataclass(slots=True)
class AuditState:
    """The ends of the rows so far. ``topic_id`` is that of the positions topic.

    ``again`` has the partitions of which nothing new was read since their lane's log lost its end.
    """

    topic_id: UUID = NOWHERE
    lanes: dict[int, LaneKnown] = field(default_factory=dict)
    partitions: dict[Partition, Known] = field(default_factory=dict)
    beginning: str = _BEFORE
    again: dict[Partition, Unsettled] = field(default_factory=dict)

    def copy(self) -> "AuditState":
        """The same, to go on from without changing this one."""
        return AuditState(self.topic_id, dict(self.lanes), dict(self.partitions), self.beginning, dict(self.again))

    def of_topic(self, topic_id: UUID) -> bool:
        """Go on in the positions topic with this id; False if that is another than before."""
        same = topic_id == self.topic_id
        if not same:
            self.beginning = _ANEW if self.topic_id != NOWHERE else _BEFORE
            self.topic_id, self.lanes, self.partitions, self.again = topic_id, {}, {}, {}
        return same

    def lane_cut(self, lane: int) -> None:
        """Read a lane's log again from its beginning: it is shorter than it was.

        Earlier rows count what is left of it, and what was lost. New is what a later start has written, which goes on
        from a position that is left, and what an earlier one has written since, which goes on from the last row.
        """
        was = self.lanes[lane]
        self.lanes[lane] = LaneKnown(starts=was.starts, again=was.read_to, cut=was.starts)
        for partition, known in self.partitions.items():
            if known.lane == lane:
                self.partitions[partition] = known._replace(offset=_NOT_READ_AGAIN)
                self.again[partition] = Unsettled(is_unknown=partition in self.again)

    def take(self, lane: int, read: Stretch, day: int, row_ms: int, copy_of: Callable[[str], str]) -> list[AuditRow]:
        """Take the entries of a lane that follow, up to the first one of another day; returns the rows.

        A row covers at most ``row_ms``; 0: one transaction.

        Raises:
            PeerError: something else is in the log.
        """
        at = (entry.record.offset for entry in read.entries if day not in (ANY_DAY, _day(entry)))
        read = read.before(next(at, read.following))
        known = self.lanes.get(lane, LaneKnown())
        known = replace(known, hole_at=max(known.hole_at, read.hole_at))
        taking = _Taking(self, lane, known, row_ms, copy_of)
        taking.take(read.entries)
        leader_epoch = max(known.leader_epoch, read.leader_epoch)
        self.lanes[lane] = replace(taking.known, read_to=read.following, leader_epoch=leader_epoch)
        return taking.rows


def first_day(read: Stretch) -> int:
    """The day of the first entry, since 1970."""
    return _day(read.entries[0]) if read.entries else ANY_DAY


def _day(entry: Entry) -> int:
    return entry.committed // DAY_MS


@dataclass(slots=True)
class _Taking:
    """The rows of one stretch of a lane: only the last position of a row's time is decoded."""

    state: AuditState
    lane: int
    known: LaneKnown
    row_ms: int
    copy_of: Callable[[str], str]
    rows: list[AuditRow] = field(default_factory=list)
    _runs: dict[tuple[int, int], str | None] = field(init=False)
    _open: dict[Partition, list[Entry]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._runs = {self.known.producer: self.known.run}

    def take(self, entries: Sequence[Entry]) -> None:
        """Add the rows of these entries."""
        for entry in entries:
            kind, partition = _key(entry.record.body)
            if partition[0] and (self.known.cut or self.state.again) and self._was_read(kind, partition, entry):
                continue
            if kind == "position":
                self._position(partition, entry)
            elif kind == "gap":
                self._gap(partition, entry)
            elif kind == "mark":
                self.known = replace(self.known, mark=(entry.producer_id, entry.producer_epoch))
            elif kind == "owner":
                self._owner(entry)
            elif kind == "layout":
                self._layout(entry)
        self._end_all()
        self.known = replace(self.known, starts=self.known.starts.after(entries))
        self.rows = [row._replace(run=self._run(row)) for row in self.rows]

    def _run(self, row: AuditRow) -> str | None:
        """The run of a row. An owner's name follows the positions of its first transaction.

        A change of lanes writes positions again, by the operator: another run has copied up to there.
        """
        run = self._runs.get((row.producer_id, row.producer_epoch))
        return None if run == OPERATOR and row.kind is Kind.COPIED else run

    def _position(self, partition: Partition, entry: Entry) -> None:
        held = self._open.setdefault(partition, [])
        if held and self._time(held[-1]) != self._time(entry):
            self._end(partition)
            held = self._open.setdefault(partition, [])
        held.append(entry)

    def _time(self, entry: Entry) -> tuple[int, int, int]:
        at = entry.committed // self.row_ms if self.row_ms else entry.record.offset
        return at, entry.producer_id, entry.producer_epoch

    def _gap(self, partition: Partition, entry: Entry) -> None:
        """A gap ends a row, and the next one names it: the position that leaves it lies before it in the log.

        A change of lanes deletes a gap in one lane, and writes it again in another: that is no news.
        """
        gap = decode(entry.record) if key_and_value(entry.record.body)[1] is not None else None
        if not isinstance(gap, Gap):
            return
        held = self._open.pop(partition, [])
        if held and held[-1].committed != entry.committed:
            self._add(partition, held)  # compaction has removed the position that leaves the gap
            held = []
        self._add(partition, held[:-1])
        if (before := self.state.partitions.get(partition)) and is_news(before, self.lane, gap.source_id, gap.next):
            cause = "; ".join(filter(None, [before.cause, gap.cause]))
            self.state.partitions[partition] = before._replace(cause=cause)
        self._add(partition, held[-1:])

    def _owner(self, entry: Entry) -> None:
        remembered = decode(entry.record)
        if isinstance(remembered, tuple) and isinstance(remembered[1], Owner):
            producer, run = (entry.producer_id, entry.producer_epoch), remembered[1].run
            self.known, self._runs[producer] = replace(self.known, producer=producer, run=run), run

    def _was_read(self, kind: str, partition: Partition, entry: Entry) -> bool:
        """True for a position or gap that earlier rows count; for a new one, set the position at which its row begins.

        A later start has gone on from the position that it found, an earlier one from the newest that was counted.
        """
        state, cut = self.state, self.known.cut
        counted, unsettled = state.partitions.get(partition), state.again.get(partition)
        if counted is None or unsettled is None:
            return cut is not None and entry.record.offset < self.known.again and cut.covers(entry)
        remembered = decode(entry.record) if kind == "position" else None
        position = remembered[1] if isinstance(remembered, tuple) else None
        now = (
            known_of(position, self.lane, entry.record.offset, self.known.layout)
            if isinstance(position, Position)
            else None
        )
        if cut is None or counted.lane != self.lane:
            return now is not None and self._taken_over(partition, entry, counted, now)
        if kind == "gap" or cut.covers(entry):
            if kind == "position":
                found = now or (unsettled.found or counted)._replace(forgotten=True, layout=self.known.layout)
                state.again[partition] = unsettled._replace(found=found)
            return cut.covers(entry)
        del state.again[partition]
        return self._begin(partition, entry, now, self._goes_on_from(counted, unsettled, entry, cut))

    def _taken_over(self, partition: Partition, entry: Entry, counted: Known, now: Known) -> bool:
        """The same for a position in another lane than the one whose log lost its end.

        If it has gone there since, it went on from the position that a start found in what is left of that log.
        """
        state = self.state
        if counted.forgotten or now.layout <= counted.layout:  # it had gone there before
            if not is_old(counted, now):
                del state.again[partition]
            return False
        unsettled, is_read = state.again.pop(partition), state.lanes[counted.lane].layout >= now.layout
        found = unsettled.found if is_read and not unsettled.is_unknown else None
        return self._begin(partition, entry, now, found, forgotten=True)

    def _goes_on_from(self, counted: Known, unsettled: Unsettled, entry: Entry, cut: Starts) -> Known | None:
        """The position from which the producer of a new entry has gone on; None if that is unknown."""
        found = unsettled.found
        if unsettled.is_unknown:
            return None
        if cut.has(entry) or (found.is_beyond(counted) if found else counted.forgotten):
            return counted
        if found is None or self.known.mark != (entry.producer_id, entry.producer_epoch):
            return None  # its start may have found another position, in what the log has lost
        maybe_removed = found.offset < self.known.hole_at and counted.is_beyond(found)
        return None if maybe_removed else found

    def _begin(
        self, partition: Partition, entry: Entry, now: Known | None, before: Known | None, forgotten: bool = False
    ) -> bool:
        """Set the position at which the row up to ``now`` begins; True if it is unknown, and a row says so."""
        counted = self.state.partitions[partition]
        if before is not None:
            was_forgotten = before.forgotten or forgotten
            self.state.partitions[partition] = before._replace(cause=counted.cause, forgotten=was_forgotten)
            return False
        self.rows.append(untold_row(partition, self.copy_of(partition[0]), self.lane, counted, now, entry))
        self.state.partitions[partition] = (now or counted)._replace(cause="")
        return now is not None

    def _layout(self, entry: Entry) -> None:
        remembered = decode(entry.record)
        if isinstance(remembered, LayoutRecord):
            self._end_all()  # the positions before it are of the layout before it
            self.known = replace(self.known, layout=remembered.number)

    def _end_all(self) -> None:
        for partition in list(self._open):
            self._end(partition)

    def _end(self, partition: Partition) -> None:
        self._add(partition, self._open.pop(partition))

    def _add(self, partition: Partition, held: Sequence[Entry]) -> None:
        """Add the row that ends with the last of these entries."""
        if not held:
            return
        last, before = held[-1], self.state.partitions.get(partition)
        if len(held) > 1 and (before is None or before.forgotten):
            self._add(partition, held[:1])  # copying begins there
            self._add(partition, held[1:])
            return
        remembered = decode(last.record)
        if not isinstance(remembered, tuple) or not isinstance(remembered[1], Position):
            if before is not None and before.lane == self.lane and last.record.offset > before.offset:
                self._add(partition, held[:-1])
                known, at = self.state.partitions[partition], last.record.offset
                known = known._replace(forgotten=True, offset=at, layout=self.known.layout)
                self.state.partitions[partition] = known
            return
        now = known_of(remembered[1], self.lane, last.record.offset, self.known.layout)
        if is_moved(before, now):
            self.state.partitions[partition] = now
        if is_old(before, now):
            return
        whole = before is not None and before.lane == self.lane and before.offset >= self.known.hole_at
        row = row_of(partition, self.copy_of(partition[0]), before, now, last, len(held) if whole else None)
        if row is not None:
            cause = row.cause or (self.state.beginning if row.kind is Kind.UNAUDITED else None)
            self.rows.append(row._replace(cause=cause))
        elif before is not None and before.cause:
            now = now._replace(cause=before.cause)
        self.state.partitions[partition] = now


@functools.lru_cache(maxsize=65536)
def _kind_of(key_bytes: bytes) -> tuple[str, Partition]:
    key = json.loads(key_bytes)
    if "lane" in key:
        return "owner", ("", 0)
    for kind in ("layout", "mark"):
        if kind in key:
            return kind, ("", 0)
    if "topic" in key:
        return "gap" if "gap" in key else "position", (str(key["topic"]), int(key["partition"]))
    return "other", ("", 0)


def _key(record_body: bytes) -> tuple[str, Partition]:
    try:
        return _kind_of(key_and_value(record_body)[0] or b"{}")
    except (ValueError, LookupError, TypeError, BatchCorrupt) as error:
        raise PeerError(f"the positions topic holds something else: {error!r}") from error
