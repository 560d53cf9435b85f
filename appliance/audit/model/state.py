"""The progress of the audit in each lane's log and each source partition, and its text in each file. Pure."""

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any
from uuid import UUID

from appliance.audit.model.entries import Entry
from appliance.audit.model.rows import NOTHING, AuditRow, RowEnd, row_end, unknown_row
from appliance.errors import PeerError, error_text
from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.kafka.records.decompression import inflate
from appliance.kafka.records.records import Record
from appliance.link.model.checkpoint import LaneCheckpoint

NO_PRODUCER = (-1, -1)

_ANEW = "the positions topic was made anew"
_BEFORE = "copied before the audit began"


@dataclass(frozen=True, slots=True)
class LaneProgress:
    """A lane's log, read up to ``read_to``; ``run`` is that of the producer that last left an owner's name there.

    ``hole_at`` is the offset before which compaction has last removed something. ``layout`` is the number of the link's
    layout there. ``leader_epoch`` is at least that of the last batch read, -1 if unknown. ``coming`` is the number of
    an announced layout with the producer that will write it, and ``waits_for`` that of the layout before whose first
    record reading stopped, since other lanes are not there; 0 if none. ``layout_at`` is the offset of the record of
    ``layout``.
    """

    read_to: int = -1
    hole_at: int = -1
    producer: tuple[int, int] = NO_PRODUCER
    run: str | None = None
    layout: int = 0
    leader_epoch: int = -1
    coming: tuple[int, int, int] = (0, *NO_PRODUCER)
    waits_for: int = 0
    layout_at: int = -1

    @property
    def is_sure(self) -> bool:
        """True if compaction has taken no later layout than the newest one that was read."""
        return self.hole_at <= max(0, self.layout_at)

    def has_reached(self, layout: int) -> bool:
        """True if all was read that the lane's log holds of the layouts before this one."""
        return max(self.layout, self.waits_for) >= layout

    def layout_of(self, producer: tuple[int, int]) -> int:
        """The number of the layout in which a producer writes there."""
        return self.coming[0] if producer == self.coming[1:] else self.layout


@dataclass(slots=True)
class AuditState:
    """The ends of the rows so far. ``topic_id`` is that of the positions topic."""

    topic_id: UUID = NOWHERE
    lanes: dict[int, LaneProgress] = field(default_factory=dict)
    partitions: dict[Partition, RowEnd] = field(default_factory=dict)
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

    def is_left_behind(self, lane: int, layout: int) -> bool:
        """True if another lane has to be read first, up to the change that makes this layout."""
        return any(not progress.has_reached(layout) for index, progress in self.lanes.items() if index != lane)

    def after_truncation(
        self, lane: int, present: LaneCheckpoint, leader_epoch: int, noticed: int, copy_of: Callable[[str], str]
    ) -> list[AuditRow]:
        """Go on at the end of a lane's log that was truncated; returns the rows up to the positions ``present`` there.

        Nobody knows what was copied up to there, nor up to the next position: a producer may go on from one that was
        lost. A partition without a position there has its row with its next one.
        """
        number = present.layout.number - present.layout.changing if present.layout else 0
        layout, last = max(self.lanes[lane].layout, number), present.read_to - 1
        self.lanes[lane] = LaneProgress(present.read_to, layout=layout, leader_epoch=leader_epoch)
        gone = [of for of, each in self.partitions.items() if each.lane == lane and of not in present.positions]
        self.partitions |= {of: self.partitions[of]._replace(offset=-1, is_lost=True) for of in gone}
        entry, rows = Entry(Record(last, noticed, b""), noticed, *NO_PRODUCER), list[AuditRow | None]()
        for partition, position in present.positions.items():
            before = self.partitions.get(partition, NOTHING)
            if before.lane == lane or (before.forgotten and before.layout < layout):
                now = row_end(position, lane, last, layout)
                rows.append(row := unknown_row(partition, copy_of(partition[0]), before, now, entry))
                is_lost, cause = bool(row) or before.is_lost, "" if row else before.cause
                self.partitions[partition] = now._replace(is_lost=is_lost, cause=cause)
        return [row for row in rows if row]


_VERSION = 1

_END_KNOWN = -1
"""A field of older releases, the offset up to which a log is read again; before it, the producer up to which it was."""

_OLDEST: tuple[Any, ...] = None, 0, NO_PRODUCER, _END_KNOWN, -1, (0, *NO_PRODUCER), 0, -1
"""The last fields of a lane, where the release had none of them."""

_BEYOND = 2**62
"""An offset that no log has: the audit finds a lane truncated that it had read up to there."""


def encode_state(state: AuditState) -> bytes:
    """The state as text, for a file's metadata."""
    whole = {
        "version": _VERSION,
        "topic_id": state.topic_id.hex,
        "beginning": state.beginning,
        "lanes": [_lane_fields(lane, progress) for lane, progress in state.lanes.items()],
        "partitions": [[*partition, *_fields(end)] for partition, end in state.partitions.items()],
        "again": [[*partition, None, True] for partition, end in state.partitions.items() if end.is_lost],
    }
    return base64.b64encode(zlib.compress(json.dumps(whole, separators=(",", ":")).encode(), 1))


def _lane_fields(lane: int, progress: LaneProgress) -> Iterable[object]:
    read_to, hole_at, producer, run, layout, *rest = astuple(progress)
    return [lane, read_to, hole_at, *producer, run, layout, producer, _END_KNOWN, *rest]


def _fields(end: RowEnd) -> Iterable[object]:
    return [*end._replace(source_id=end.source_id.hex, destination_id=end.destination_id.hex)][:-1]  # type: ignore[arg-type]


def decode_state(text: bytes) -> AuditState:
    """Decode a state; PeerError if it is damaged, or a newer release's."""
    try:
        whole = json.loads(inflate(base64.b64decode(text, validate=True)))
        if whole["version"] != _VERSION:
            raise PeerError(f"the audit table was written by a newer release: its state has version {whole['version']}")
        starts = {lane: rest for lane, *rest in whole.get("starts", ())}
        lanes = {lane: _lane(rest, starts.get(lane)) for lane, *rest in whole["lanes"]}
        lost = {(topic, number) for topic, number, *_ in whole.get("again", ())}
        partitions = {
            Partition(topic, number): _row_end(rest, (topic, number) in lost)
            for topic, number, *rest in whole["partitions"]
        }
        return AuditState(UUID(whole["topic_id"]), lanes, partitions, whole["beginning"])
    except (ValueError, LookupError, TypeError, zlib.error) as error:
        raise PeerError(f"the audit table's state is damaged: {error_text(error)}") from error


def _lane(fields: Sequence[Any], starts: Sequence[Any] | None) -> LaneProgress:
    """A lane. Older releases have read a truncated log again: it counts as just truncated."""
    read_to, hole_at, id_, epoch, *rest = fields
    if starts is not None:
        _, again, cut, _, *others = starts
        read_to, rest = _BEYOND if cut and read_to < again else read_to, [*rest, *others]
    run, layout, _, _, leader_epoch, coming, waits_for, layout_at = *rest, *_OLDEST[len(rest) :]
    return LaneProgress(read_to, hole_at, (id_, epoch), run, layout, leader_epoch, tuple(coming), waits_for, layout_at)


def _row_end(fields: Sequence[Any], is_lost: bool) -> RowEnd:
    lane, offset, source, copy, *rest = fields
    return RowEnd(lane, offset, UUID(source), UUID(copy), *rest)._replace(is_lost=is_lost)
