"""The position of a source partition: the progress of its copy, as the destination holds it."""

import re
import uuid
from dataclasses import dataclass, replace
from typing import NamedTuple

from appliance.link.model.offset_tail import OffsetTail

UNKNOWN = -1
"""The next offset of a partition with unknown progress: its copy holds unaccounted records (invariant H)."""

LOST = "has lost what it had acknowledged"
"""Marks a reason to stop: the copy is shorter than it was (invariant J)."""

UNACCOUNTED = "that no position accounts for"
"""Marks a reason to stop: the copy holds more than is remembered (invariant H)."""

_BEFORE_A_QUOTE = re.compile(
    r"\S+ offset \d+ (is damaged|is refused: |fails in the SQL of)"
    r"|\S+ from offset \d+: (who wrote its batches is not known)?"
)
"""Reasons to stop that then quote what records, brokers or libraries say."""

NOBODY = -1
"""The producer id of an end that was found, not written."""

ANYBODY = -2
"""The same if only the link may have written past the end: records there are not accounted for."""


class SourcePlace(NamedTuple):
    """A place in a source partition: an offset, and the leader epoch of what lies before it, or a later one (KIP-320).

    The epoch is -1 only where the log keeps none, or where an older release has recorded the place.
    """

    offset: int
    leader_epoch: int


NO_PLACE = SourcePlace(UNKNOWN, -1)


class Trial(NamedTuple):
    """Source offsets up to ``end`` that so many processes have given to the SQL; over once ``start`` is passed."""

    start: int
    end: int
    tries: int


@dataclass(frozen=True, slots=True)
class CopyEnd:
    """The end of a complete copy (invariant J), after the newest transaction that wrote to it.

    ``offset`` is the destination's, past that transaction's commit marker. The producer wrote under a leader epoch of
    at least ``leader_epoch``, -1 if unknown.
    """

    offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class Loss:
    """The place of a loss in a copy, which holds none of the link's records from offset ``end`` on.

    ``is_known`` if all those below are there. Otherwise no leader says from where on they are lost, and others' records
    may stand in their place.
    """

    end: int
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Position:
    """The state of one source partition after the transaction that wrote it.

    ``next_offset`` is the first source offset not yet copied; ``records`` and ``bytes`` count everything ever copied;
    ``timestamp`` is that of the newest copied record, in milliseconds, -1 before the first one; ``leader_epoch`` is
    that of the last batch read, before the first one that of the place where copying began. ``stopped`` is the reason
    that the partition is no longer copied, empty if it is copied, and ``stopped_at`` the time of the stop, in
    milliseconds. ``copy_end`` is None before the first record, and in positions of older releases; so is ``tail``, the
    newest range of the map of offsets. ``dropped`` counts the records that a link had written at the source, which
    are not copied; ``filtered`` those that the link's SQL has left out, and ``dead_letters`` those that it failed on,
    which are in the copy's topic of these. ``rebuilt`` counts the copied records that did not go raw, since the last
    position without that number: None, an older release's. ``trial`` is what the SQL is given now, or was when its
    process ended.
    """

    source_id: uuid.UUID
    destination_id: uuid.UUID
    next_offset: int
    leader_epoch: int
    records: int = 0
    bytes: int = 0
    timestamp: int = -1
    stopped: str = ""
    stopped_at: int = -1
    copy_end: CopyEnd | None = None
    tail: OffsetTail | None = None
    dropped: int = 0
    filtered: int = 0
    dead_letters: int = 0
    rebuilt: int | None = None
    trial: Trial | None = None

    def written(self, copy_end: CopyEnd, tail: OffsetTail) -> "Position":
        """The same, after a write to the copy."""
        # Of thousands in a second: ``replace`` would take three times as long.
        counts = self.records, self.bytes, self.timestamp
        ids, stop = (self.source_id, self.destination_id), (self.stopped, self.stopped_at)
        left_out = self.dropped, self.filtered, self.dead_letters
        place = self.next_offset, self.leader_epoch
        return Position(*ids, *place, *counts, *stop, copy_end, tail, *left_out, self.rebuilt)

    def stop(self, reason: str, now: int) -> "Position":
        """The same, stopped; a repeated stop for the same reason keeps the time of the first."""
        return self if self.stopped == reason else replace(self, stopped=reason, stopped_at=now, trial=None)

    def has_stopped_for(self, words: str) -> bool:
        """True if its reason to stop has these words, and does not merely quote them."""
        return words in own_words(self.stopped)

    def go_on(self) -> "Position":
        """The same, no longer stopped."""
        return replace(self, stopped="", stopped_at=-1) if self.stopped else self

    def stop_shortened(self, reason: str, now: int, loss: Loss) -> "Position":
        """The same, stopped since the copy has lost records; so the map ends there, or none of it holds any more."""
        stopped = self.stop(reason, now)
        if self.next_offset == UNKNOWN or (stopped is self and not loss.is_known and self._begins_below(loss.end)):
            return stopped
        if loss.is_known and self.tail is not None and self.tail.copy_to <= loss.end:
            return stopped
        return replace(stopped, tail=OffsetTail.begin(self.next_offset, loss.end))

    def _begins_below(self, end: int) -> bool:
        """True when the map's tail is cut already, at an offset of the copy up to ``end``."""
        return self.tail is not None and self.tail.is_empty and self.tail.copy_to <= end

    def begin_again(self, source_id: uuid.UUID, destination_id: uuid.UUID, place: SourcePlace) -> "Position":
        """The same counts, continued from an unrelated place."""
        same_copy = destination_id == self.destination_id
        return replace(
            self,
            source_id=source_id,
            destination_id=destination_id,
            next_offset=place.offset,
            leader_epoch=place.leader_epoch,
            copy_end=self.copy_end if same_copy else None,
            tail=OffsetTail.begin(place.offset, self.tail.copy_to) if same_copy and self.tail else None,
            trial=None,
        )


def own_words(reason: str) -> str:
    """The part of a reason to stop that decides, without what it quotes: anybody may write a record."""
    match = _BEFORE_A_QUOTE.match(reason)
    return match[0] if match else reason
