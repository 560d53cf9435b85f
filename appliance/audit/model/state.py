"""The progress of the audit in each lane's log and each source partition, which is stored in each file. Pure."""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from appliance.audit.model.rows import Known
from appliance.audit.model.starts import NO_PRODUCER, NO_STARTS, Starts
from appliance.kafka.protocol.metadata import NOWHERE, Partition

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
    ``leader_epoch`` is at least that of the last batch read, -1 if unknown. ``coming`` is the number of an announced
    layout with the producer that will write it, and ``waits_for`` that of the layout before whose first record reading
    stopped, since other lanes are not there; 0 if none. ``layout_at`` is the offset of the record of ``layout``.
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

    def is_left_behind(self, lane: int, layout: int) -> bool:
        """True if another lane has to be read first, up to the change that makes this layout."""
        return any(not known.has_reached(layout) for index, known in self.lanes.items() if index != lane)

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
