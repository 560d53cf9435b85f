"""How far the log of a source partition and that of its copy agree, by leader epochs (KIP-101). Pure.

Within one leader epoch a log only grows. A leader that was elected uncleanly may lack the end of an earlier epoch, and
have written others in its place: so the ends alone prove nothing. If the epochs of a copy end too low, or are unknown,
the batch at the end decides: leaders may have changed without any loss before it was written. What nobody tells is
None, never 0.
"""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from appliance.errors import ApplianceError
from appliance.kafka.protocol.metadata import NOWHERE, UNKNOWN_EPOCH, Partition, is_another
from appliance.link.model.position import ANYBODY, LOST, NOBODY, CopyEnd, Loss, Position

MADE_ANEW = "was deleted and made anew since it was copied"


@dataclass(frozen=True, slots=True)
class SourceLog:
    """The log of a source partition up to the ``end`` to be copied.

    ``epochs_end`` is the end of its epochs up to that of the position. None is unknown.
    """

    topic_id: UUID
    end: int | None
    leader_epoch: int = UNKNOWN_EPOCH
    epochs_end: int | None = None


@dataclass(frozen=True, slots=True)
class CopyLog:
    """The log of a copy; ``topic_id`` is None if it is not there, ``end`` if its leader does not tell, by ``error``.

    ``epochs_end`` is the end of its epochs up to that of the last write, and ``last_batch`` true if that write's batch
    is in its place; None is unknown.
    """

    partition: Partition
    topic_id: UUID | None = NOWHERE
    end: int | None = None
    leader_epoch: int = UNKNOWN_EPOCH
    epochs_end: int | None = None
    last_batch: bool | None = None
    error: ApplianceError | None = None

    def is_decided(self, written: CopyEnd) -> bool:
        """True when ends and epochs say all that the last written batch could say."""
        if self.end is None or self.end < written.offset or written.producer_id in (NOBODY, ANYBODY):
            return True
        return self._grows_on(written) or (self.epochs_end is not None and self.epochs_end >= written.offset)

    def awaits_marker(self, written: CopyEnd) -> bool:
        """True if only the marker of the last write is missing, which may be on its way to a new leader."""
        is_marker_missing = self.end == written.offset - 1 and (self.epochs_end is None or self.epochs_end == self.end)
        return is_marker_missing and not self._grows_on(written) and written.producer_id not in (NOBODY, ANYBODY)

    def doubt(self, written: CopyEnd | None) -> str:
        """The reason that nobody can say now what it holds; empty if its leader can."""
        if self.error:
            return str(self.error)
        if written and 0 <= self.leader_epoch < written.leader_epoch:
            return "metadata name a former leader"
        return "its newest transaction's marker is not there yet" if written and self.awaits_marker(written) else ""

    def loss(self, written: CopyEnd) -> Loss | None:
        """The place from which the copy has lost what was written to it; None if none is known.

        A commit's marker may be on its way: a lane's position may be seen before it.
        """
        if self.end is None or (self._grows_on(written) and self.end >= written.offset - 1):
            return None
        by_epochs = self.epochs_end is None or self.epochs_end >= written.offset
        whole = by_epochs if self.is_decided(written) else self.last_batch is not False
        if self.end >= written.offset and whole:
            return None
        if self.epochs_end is None or self.epochs_end < 0:
            return Loss(self.end, is_known=False)  # others may have filled any part of the hole
        return Loss(min(self.end, self.epochs_end))

    def _grows_on(self, written: CopyEnd) -> bool:
        """True while the leader of the last write leads."""
        return self.leader_epoch == written.leader_epoch >= 0


def lost_records(copy: Partition, written: CopyEnd, loss: Loss) -> str:
    """The offsets that a copy has lost, for people."""
    which = f"{loss.end} to" if loss.is_known else "up to"
    unknown = "" if loss.is_known else ", its leader does not know which,"
    return f"{copy} {LOST}, offsets {which} {written.offset - 1}{unknown} of the copy"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Both logs hold the same below source offset ``divergence_offset``; with ``by_ends`` as far as their ends show.

    ``uncopied`` counts the source's offsets from there on, ``lost_at_source`` the copied ones that it holds no more.
    ``unrelated`` is the reason that a log is not there or another topic's, ``lost`` that one is not whole any more,
    ``unknown`` that nobody knows what the copy holds.
    """

    divergence_offset: int | None = None
    uncopied: int | None = None
    lost_at_source: int | None = None
    by_ends: bool = False
    unrelated: str = ""
    lost: str = ""
    unknown: str = ""


def agree(topic: str, position: Position, source: SourceLog | None, copy: CopyLog) -> Agreement:
    """Judge both logs of a partition that was copied up to a known offset; a silent source is None."""
    if source and is_another(position.source_id, source.topic_id):
        return Agreement(unrelated=f"source topic {topic} {MADE_ANEW}")
    source_side, name = divergence(position, source) if source else Agreement(), copy.partition.topic
    fault: dict[str, Any] = {}
    if copy.topic_id is None:
        fault["unrelated"] = f"destination topic {name} is not there any more, or DESTINATION_API_KEY may not see it"
    elif is_another(position.destination_id, copy.topic_id):
        fault["unrelated"] = f"destination topic {name} {MADE_ANEW}"
    elif doubt := copy.doubt(position.copy_end):
        fault["unknown"] = f"nobody knows what {copy.partition} holds: {doubt}"
    elif position.copy_end and (loss := copy.loss(position.copy_end)):
        lost = lost_records(copy.partition, position.copy_end, loss)
        fault["lost"] = f"{lost}; {source_side.lost}" if source_side.lost else lost
    return replace(source_side, uncopied=None, **fault) if fault else source_side


def divergence(position: Position, source: SourceLog) -> Agreement:
    """Compare a source's log with what was copied of it."""
    offset, end, epoch = position.next_offset, source.end, source.leader_epoch
    if end is None or 0 <= epoch < position.leader_epoch:
        return Agreement()  # the metadata name a former leader
    by_ends = False
    if source.epochs_end is not None and source.epochs_end >= 0:
        divergence_offset = min(offset, source.epochs_end)
    elif epoch == position.leader_epoch >= 0:
        divergence_offset = offset  # an end below it was asked for a moment earlier
    else:
        divergence_offset, by_ends = min(offset, end), True
    uncopied = None if by_ends and divergence_offset < offset else max(0, end - divergence_offset)
    which = "" if by_ends else f": offsets {divergence_offset} to {offset - 1}"
    lost = f"the source has lost records that were copied{which}" if divergence_offset < offset else ""
    return Agreement(divergence_offset, uncopied, offset - divergence_offset, by_ends, lost=lost)
