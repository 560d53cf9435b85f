"""The position of a source partition: how far it is copied, as the destination has it."""

import uuid
from dataclasses import dataclass, replace

from appliance.link.model.offset_tail import OffsetTail

UNKNOWN = -1
"""The next offset of a partition of which nobody knows how far it is copied: its copy holds records that no position
accounts for (invariant H)."""

LOST = "has lost what it had acknowledged"
"""By which a reason to stop says that the copy is shorter than it was (invariant J)."""

UNACCOUNTED = "that no position accounts for"
"""By which a reason to stop says that the copy holds more than is remembered (invariant H)."""

NOBODY = -1
"""The id of the producer of an end that was found, and not written."""

ANYBODY = -2
"""The same where nobody but the link may have written past the end: whatever lies there is not accounted for."""


@dataclass(frozen=True, slots=True)
class CopyEnd:
    """The end of a copy that has lost nothing (invariant J), after the newest transaction that wrote to it.

    ``offset`` is the destination's, past that transaction's commit marker. It was written by a producer under a leader
    epoch of at least ``leader_epoch``, -1 when that is not known.
    """

    offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class Position:
    """The state of one source partition after the transaction that wrote it.

    ``next_offset`` is the first source offset not yet copied; ``records`` and ``bytes`` count all that was ever
    copied; ``timestamp`` is that of the newest record copied, in milliseconds, -1 before the first one;
    ``leader_epoch`` is that of the last batch read, -1 before the first one. ``stopped`` says why the partition is not
    copied any further, empty when it is, and ``stopped_at`` since when, in milliseconds. ``copy_end`` is None before
    the first record, and where an older release wrote the position; so is ``tail``, the newest stretch of the map of
    offsets.
    """

    source_id: uuid.UUID
    destination_id: uuid.UUID
    next_offset: int
    leader_epoch: int = -1
    records: int = 0
    bytes: int = 0
    timestamp: int = -1
    stopped: str = ""
    stopped_at: int = -1
    copy_end: CopyEnd | None = None
    tail: OffsetTail | None = None

    def written(self, copy_end: CopyEnd, tail: OffsetTail) -> "Position":
        """The same, after the copy was written to."""
        # Of thousands in a second: ``replace`` would take three times as long.
        counts = self.records, self.bytes, self.timestamp
        ids, stop = (self.source_id, self.destination_id), (self.stopped, self.stopped_at)
        return Position(*ids, self.next_offset, self.leader_epoch, *counts, *stop, copy_end, tail)

    def stop(self, reason: str, now: int) -> "Position":
        """The same, stopped; one that stops again for the same reason has been stopped all along."""
        return self if self.stopped == reason else replace(self, stopped=reason, stopped_at=now)

    def go_on(self) -> "Position":
        """The same, no longer stopped."""
        return replace(self, stopped="", stopped_at=-1) if self.stopped else self

    def stop_shortened(self, reason: str, now: int, end: int) -> "Position":
        """The same, stopped since the copy holds nothing of ours from offset ``end`` on; so the map ends there."""
        stopped = self.stop(reason, now)
        if self.next_offset == UNKNOWN or (self.tail is not None and self.tail.copy_to <= end):
            return stopped
        return replace(stopped, tail=OffsetTail.begin(self.next_offset, end))

    def begin_again(self, source_id: uuid.UUID, destination_id: uuid.UUID, offset: int) -> "Position":
        """The same counts, read on from an offset that does not follow what was read before."""
        same_copy = destination_id == self.destination_id
        return replace(
            self,
            source_id=source_id,
            destination_id=destination_id,
            next_offset=offset,
            leader_epoch=-1,
            copy_end=self.copy_end if same_copy else None,
            tail=OffsetTail.begin(offset, self.tail.copy_to) if same_copy and self.tail else None,
        )
