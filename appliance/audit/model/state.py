"""The progress of the audit in each lane's log and each source partition, which is stored in each file. Pure."""

import base64
import functools
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from appliance.audit.model.entries import Entry, Stretch
from appliance.audit.model.rows import AuditRow, Kind, Known, is_moved, is_news, is_old, known_of, row_of
from appliance.errors import BatchCorrupt, PeerError
from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.kafka.records.records import key_and_value
from appliance.link.model.checkpoint import OPERATOR, Forgotten, Gap, Mark, Owner
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.layout import LayoutRecord
from appliance.link.model.position import Position

_VERSION = 1
DAY_MS = 86_400_000
ANY_DAY = -1

_ANEW = "the positions topic was made anew"
_BEFORE = "copied before the audit began"

_NO_MARK = (-1, -1)


@dataclass(frozen=True, slots=True)
class LaneKnown:
    """A lane's log, read up to ``read_to``; ``run`` is that of the producer that last left an owner's name there.

    ``hole_at`` is the offset before which compaction has last removed something. ``layout`` is the number of the link's
    layout there, and ``mark`` the producer id and epoch of the lane's newest start. Before offset ``again`` the log is
    read once more, and holds nothing new before the next start.
    """

    read_to: int = -1
    hole_at: int = -1
    producer: tuple[int, int] = (-1, -1)
    run: str | None = None
    layout: int = 0
    mark: tuple[int, int] = _NO_MARK
    again: int = -1


@dataclass(slots=True)
class AuditState:
    """The ends of the rows so far. ``topic_id`` is that of the positions topic."""

    topic_id: UUID = NOWHERE
    lanes: dict[int, LaneKnown] = field(default_factory=dict)
    partitions: dict[Partition, Known] = field(default_factory=dict)
    beginning: str = _BEFORE

    def copy(self) -> "AuditState":
        """The same, to go on from without changing this one."""
        return AuditState(self.topic_id, dict(self.lanes), dict(self.partitions), self.beginning)

    def of_topic(self, topic_id: UUID) -> bool:
        """Go on in the positions topic with this id; False if that is another than before."""
        same = topic_id == self.topic_id
        if not same:
            self.beginning = _ANEW if self.topic_id != NOWHERE else _BEFORE
            self.topic_id, self.lanes, self.partitions = topic_id, {}, {}
        return same

    def lane_cut(self, lane: int) -> None:
        """Read a lane's log again from its beginning: it is shorter than it was.

        Earlier rows count what is left of it, and what was lost. New is what a later start has written, since a
        producer whose records were lost cannot go on, and what lies further on than it was read.
        """
        was = self.lanes[lane]
        self.lanes[lane] = LaneKnown(mark=was.mark, again=was.read_to if was.mark != _NO_MARK else -1)
        for partition, known in self.partitions.items():
            if known.lane == lane:
                self.partitions[partition] = known._replace(offset=-1)

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
        self.lanes[lane] = replace(taking.known, read_to=read.following)
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
            if entry.record.offset < self.known.again and kind in ("position", "gap"):
                self._read_again(partition, entry)
            elif kind == "position":
                self._position(partition, entry)
            elif kind == "gap":
                self._gap(partition, entry)
            elif kind == "mark":
                self._mark(entry)
            elif kind == "owner":
                self._owner(entry)
            elif kind == "layout":
                self._layout(entry)
        self._end_all()
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

    def _mark(self, entry: Entry) -> None:
        remembered = decode(entry.record)
        if isinstance(remembered, Mark):
            mark = remembered.producer_id, remembered.epoch
            if mark > self.known.mark:
                self.known = replace(self.known, mark=mark, again=-1)

    def _read_again(self, partition: Partition, entry: Entry) -> None:
        """Go on from a position that earlier rows count."""
        remembered, before = decode(entry.record), self.state.partitions.get(partition)
        if before is None or before.lane != self.lane:
            return
        if isinstance(remembered, tuple) and isinstance(remembered[1], Position):
            now = known_of(remembered[1], self.lane, entry.record.offset, self.known.layout)
            self.state.partitions[partition] = now
        elif isinstance(remembered, Forgotten) and remembered.gap is None:
            self.state.partitions[partition] = before._replace(forgotten=True, layout=self.known.layout)

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


def encode_state(state: AuditState) -> bytes:
    """The state as text, for a file's metadata."""
    partitions: Iterable[list[object]] = (
        [*partition, *known._replace(source_id=known.source_id.hex, destination_id=known.destination_id.hex)]  # type: ignore[arg-type]
        for partition, known in state.partitions.items()
    )
    lanes = [
        [lane, known.read_to, known.hole_at, *known.producer, known.run, known.layout, known.mark, known.again]
        for lane, known in state.lanes.items()
    ]
    whole = {
        "version": _VERSION,
        "topic_id": state.topic_id.hex,
        "beginning": state.beginning,
        "lanes": lanes,
        "partitions": list(partitions),
    }
    return base64.b64encode(zlib.compress(json.dumps(whole, separators=(",", ":")).encode(), 1))


def _newer(fields: Sequence[Any]) -> Sequence[Any]:
    """The fields of a lane from its run on, which older releases do not all have; JSON has no tuples."""
    return [tuple(each) if isinstance(each, list) else each for each in fields]


def decode_state(text: bytes) -> AuditState:
    """Decode a state.

    Raises:
        PeerError: it is damaged, or a newer release's.
    """
    try:
        whole = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
        if whole["version"] != _VERSION:
            raise PeerError(f"the audit table was written by a newer release: its state has version {whole['version']}")
        lanes = {
            lane: LaneKnown(to, hole, (id_, epoch), *_newer(rest))
            for lane, to, hole, id_, epoch, *rest in whole["lanes"]
        }
        partitions = {
            (topic, number): Known(lane, offset, UUID(source), UUID(copy), *rest)
            for topic, number, lane, offset, source, copy, *rest in whole["partitions"]
        }
        return AuditState(UUID(whole["topic_id"]), lanes, partitions, whole["beginning"])
    except (ValueError, LookupError, TypeError, zlib.error) as error:
        raise PeerError(f"the audit table's state is damaged: {error!r}") from error
