"""The plan of a failback: where the link in reverse begins, and where the link continues after it. Pure.

The link in reverse copies from ``T.copy`` to ``T``. It begins at the end of the link's last transaction in the copy, so
that it copies nothing back that came from ``T``. The link continues where the reverse one has ended in ``T``, not at
the log's end: later records of producers in ``T`` are copied.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from appliance.kafka.protocol.metadata import is_another
from appliance.link.model.agreement import SourceLog, divergence
from appliance.link.model.checkpoint import Gap
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import ANYBODY, LOST, UNACCOUNTED, UNKNOWN, CopyEnd, Loss, Position, SourcePlace
from appliance.link.model.replicas import Replica

GIVE_UP = "`appliance rm-topic` gives the topic up, and leaves its copy as it is"
"""The remedy of what can never be brought back."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason that a partition cannot be failed back now."""

    partition: str
    reason: str

    def __str__(self) -> str:
        """Describe it in one line."""
        return f"{self.partition}: {self.reason}"


@dataclass(frozen=True, slots=True)
class PromotedLogs:
    """Both logs of a promoted partition at a failback.

    ``epochs_end`` is the source's end of the leader epochs up to that of the last copied record, None if unknown.
    ``copy_start`` is the start of the copy's log, and ``copy_epoch`` its leader's epoch. ``loss`` is the place from
    which the copy has lost records of the link, None if it has lost none.
    """

    source_end: CopyEnd
    copy_epoch: int
    epochs_end: int | None = None
    copy_start: int = 0
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """A partition's first position of the link in reverse.

    ``diverged`` are the source's uncopied offsets, markers included: from the first up to but without the second. They
    stay in the source's log, as Kafka cannot cut them out. ``deleted`` are offsets of the copy likewise, which
    retention deleted before they were copied back; ``lost`` are offsets that the link had written and the copy has
    lost, so that only the source has those records.
    """

    position: Position
    diverged: tuple[int, int]
    deleted: tuple[int, int]
    lost: tuple[int, int] = (0, 0)


def divergence_offset(forward: Position, logs: PromotedLogs) -> int | None:
    """The source offset where the logs diverge: below it, the source holds the copied records; None if unknown."""
    end = logs.source_end
    return divergence(
        forward, SourceLog(forward.source_id, end.offset, end.leader_epoch, logs.epochs_end)
    ).divergence_offset


def seed(
    replica: Replica, forward: Position | None, logs: PromotedLogs, begin: int | None = None, *, grown: bool = False
) -> Seed | Refusal:
    """Plan the beginning of a promoted partition in reverse.

    ``replica`` is the partition as both clusters have it now, and ``forward`` is its position in the link; with
    ``grown`` there may be none, as the topic got the partition after the link had stopped. ``begin`` is the copy's
    offset where the logs diverge, if that is not the end of the link's last transaction: records that the source has
    lost are copied back with the rest.
    """
    if forward is None and grown:
        return _seed(replica, 0, logs, 0)
    if reason := _unusable(replica, forward):
        return Refusal(replica.name, reason)
    assert forward is not None
    assert forward.copy_end is not None
    diverges_at = divergence_offset(forward, logs)
    end = forward.copy_end.offset
    if logs.loss is not None and not logs.loss.is_known:
        copy = str(replica.copy)
        what = f"{copy} {LOST} below offset {end}, and its leader does not know from which offset on"
        return Refusal(replica.name, f"{what}, so what it holds of its own is not known: {GIVE_UP}")
    lost = (end if logs.loss is None else min(logs.loss.end, end)), end
    if diverges_at is None:
        older = f"the source is led in epoch {logs.source_end.leader_epoch}, and {forward.leader_epoch} was copied"
        return Refusal(replica.name, f"{older}: run it again if a leader moves just now; else {GIVE_UP}")
    if diverges_at == forward.next_offset:
        return replace(_seed(replica, lost[0], logs, diverges_at), lost=lost)
    if begin is None:
        what = f"from offset {diverges_at} on the source does not hold what was copied up to {forward.next_offset}"
        return Refusal(
            replica.name,
            f"{what}: it has lost records, which only the copy has, and the map of offsets does not say where they are "
            "there",
        )
    return replace(_seed(replica, min(begin, lost[0]), logs, diverges_at), lost=lost)


def _seed(replica: Replica, copy_from: int, logs: PromotedLogs, diverges_at: int) -> Seed:
    begin = SourcePlace(max(copy_from, logs.copy_start), logs.copy_epoch)
    tail = OffsetTail.begin(begin.offset, logs.source_end.offset)
    position = Position(replica.destination_id, replica.source_id, *begin, copy_end=logs.source_end, tail=tail)
    return Seed(position, (diverges_at, logs.source_end.offset), (copy_from, begin.offset))


def _unusable(replica: Replica, forward: Position | None) -> str:
    """The reason that the beginning of the copy's own records is unknown; empty if it is known.

    After a failback the link has written nothing: all records past the end that it left are the copy's own.
    """
    copy = str(replica.copy)
    if forward is None or forward.next_offset == UNKNOWN:
        return f"no position says how far it was copied, so what {copy} holds of its own is not known: {GIVE_UP}"
    if is_another(forward.source_id, replica.source_id):
        return f"topic {replica.source_topic} was deleted and made anew since it was copied: {GIVE_UP}"
    if is_another(forward.destination_id, replica.destination_id):
        return f"topic {replica.destination_topic} was deleted and made anew since it was written to: {GIVE_UP}"
    if forward.copy_end is None:
        return f"its position does not say where the link's last transaction in {copy} ended: {GIVE_UP}"
    own = forward.copy_end.producer_id == ANYBODY
    if forward.has_stopped_for(LOST) or (forward.has_stopped_for(UNACCOUNTED) and not own):
        return forward.stopped
    return ""


def has_moved(replica: Replica, reverse: Position) -> str:
    """The reason that the records copied back do not belong to these topics; empty if they do."""
    if is_another(reverse.source_id, replica.destination_id) or is_another(reverse.destination_id, replica.source_id):
        return f"its topic or the copy's was deleted and made anew since it was copied back: {GIVE_UP}"
    return ""


def returned(
    replica: Replica, forward: Position | None, reverse: Position | None, epoch: int, copy_end: CopyEnd, open_from: int
) -> Position | Refusal:
    """Plan the link's position after copying back, given the copy's end and stable end after fencing.

    Records in the copy after that end are foreign. ``epoch`` is the source leader's, which holds what was copied back.

    The stable end, ``open_from``, lies before the end while a transaction is open in the copy. Records of the copy that
    are not in the source yet are refused: the position's end of the copy would hide them permanently.
    """
    copy = str(replica.copy)
    if reverse is None or reverse.copy_end is None:
        return Refusal(replica.name, f"nothing says how much of {copy} was copied back")
    if reason := has_moved(replica, reverse):
        return Refusal(replica.name, reason)
    if reverse.stopped:
        return Refusal(replica.name, f"it is not copied back any further: {reverse.stopped}")
    if open_from < copy_end.offset:
        return Refusal(replica.name, f"a transaction is open in {copy} from offset {open_from} on")
    if reverse.next_offset != copy_end.offset:
        behind = f"{copy} ends at offset {copy_end.offset}, and is copied back up to {reverse.next_offset}"
        return Refusal(replica.name, f"{behind}: stop the producers there")
    end = SourcePlace(reverse.copy_end.offset, epoch)
    position = forward or Position(replica.source_id, replica.destination_id, *end)
    moved = position.go_on().begin_again(replica.source_id, replica.destination_id, end)
    tail = OffsetTail.begin(end.offset, copy_end.offset)
    return replace(moved, copy_end=replace(copy_end, producer_id=ANYBODY), tail=tail)


def given_back(reverse: Iterable[Segment], begin: int) -> list[Segment]:
    """The map of the records copied back, in the link's direction: of the source from offset ``begin`` on."""
    return [
        Segment(each.destination_id, each.source_id, each.range.swapped())
        for each in reverse
        if each.range.copy_to > begin
    ]


def lost_begin(reverse: Iterable[Segment], position: Position, begun: Gap, forward: Position | None) -> int | None:
    """The copy's offset from which the source has lost the records copied back; None if unknown.

    The map of the records copied back is cut to those left. If all are lost, copying back restarts at its beginning.
    """
    kept_to = position.tail.copy_to if position.tail else UNKNOWN
    for each in reverse:
        if not each.range.is_empty and each.range.copy_to == kept_to:
            return each.range.source_to
    as_it_was = forward is not None and forward.next_offset == begun.first and kept_to == begun.next
    return forward.copy_end.offset if as_it_was and forward and forward.copy_end else None
