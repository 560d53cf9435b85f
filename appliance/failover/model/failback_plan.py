"""The plan of a failback: where the link in reverse begins, and where the link goes on after it. Pure.

The link in reverse copies from ``T.copy`` to ``T``. It begins where the link's last transaction in the copy ended, so
that it copies nothing back that came from ``T``. The link goes on where the reverse one has ended in ``T``, and not at
the log's end: what a producer has written to ``T`` since then is copied.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from appliance.kafka.protocol.metadata import is_another
from appliance.link.model.checkpoint import Gap
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import ANYBODY, LOST, UNACCOUNTED, UNKNOWN, CopyEnd, Position
from appliance.link.model.replicas import Replica

GIVE_UP = "`appliance rm-topic` gives the topic up, and leaves its copy as it is"
"""The remedy of what can never be brought back."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason that a partition cannot be failed back as things are."""

    partition: str
    reason: str

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.partition}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Found:
    """Both logs of a promoted partition, as a failback finds them.

    ``held_to`` is the offset up to which the source holds what was written up to the leader epoch of the last record
    that was copied, None where nobody knows. ``copy_start`` is where the copy's log starts. ``lost_from`` is the offset
    from which on the copy has lost what the link had written, None where it has lost nothing.
    """

    source_end: CopyEnd
    held_to: int | None = None
    copy_start: int = 0
    lost_from: int | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """A partition's first position of the link in reverse.

    ``diverged`` are the offsets that the source holds, markers included, and that were never copied: from the first up
    to but without the second. They stay in the source's log, as Kafka cannot cut them out. ``deleted`` are offsets of
    the copy likewise, which retention took before they were brought back; ``lost`` are those that the link had written
    and the copy has lost, so that the source alone has those records.
    """

    position: Position
    diverged: tuple[int, int]
    deleted: tuple[int, int]
    lost: tuple[int, int] = (0, 0)


def parts_at(forward: Position, found: Found) -> int:
    """The source offset at which the logs part: below it, the source holds what was copied.

    A source that lost its newest records in an unclean election may have written others in their place since.
    """
    held_to = found.held_to if found.held_to is not None and found.held_to >= 0 else forward.next_offset
    return min(forward.next_offset, found.source_end.offset, held_to)


def seed(
    replica: Replica, forward: Position | None, found: Found, begin: int | None = None, *, grown: bool = False
) -> Seed | Refusal:
    """Plan the beginning of a promoted partition's way back.

    ``replica`` is the partition as both clusters have it now, and ``forward`` is the link's position of it; with
    ``grown`` it may have none, as the topic got the partition after the link had stopped. ``begin`` is the copy's
    offset at which the logs part, where that is not where the link's last transaction ended: what the source has
    lost is brought back with the rest.
    """
    if forward is None and grown:
        return _seed(replica, 0, found, 0)
    if reason := _unusable(replica, forward):
        return Refusal(replica.name, reason)
    assert forward is not None
    assert forward.copy_end is not None
    parted = parts_at(forward, found)
    end = forward.copy_end.offset
    lost = (end if found.lost_from is None else min(found.lost_from, end)), end
    if parted == forward.next_offset:
        return replace(_seed(replica, lost[0], found, parted), lost=lost)
    if begin is None:
        return Refusal(
            replica.name,
            f"from offset {parted} on the source does not hold what was copied up to {forward.next_offset}: it has "
            "lost records, which only the copy has, and the map of offsets does not say where they are there",
        )
    return replace(_seed(replica, min(begin, lost[0]), found, parted), lost=lost)


def _seed(replica: Replica, copy_from: int, found: Found, parted: int) -> Seed:
    begin = max(copy_from, found.copy_start)
    tail = OffsetTail.begin(begin, found.source_end.offset)
    position = Position(replica.destination_id, replica.source_id, begin, copy_end=found.source_end, tail=tail)
    return Seed(position, (parted, found.source_end.offset), (copy_from, begin))


def _unusable(replica: Replica, forward: Position | None) -> str:
    """The reason that nobody knows where the copy's own records begin; empty when it is known.

    After a failback the link has written nothing: whatever lies past the end that it left is the copy's own.
    """
    copy = f"{replica.destination_topic}-{replica.partition}"
    if forward is None or forward.next_offset == UNKNOWN:
        return f"no position says how far it was copied, so what {copy} holds of its own is not known: {GIVE_UP}"
    if is_another(forward.source_id, replica.source_id):
        return f"topic {replica.source_topic} was deleted and made anew since it was copied: {GIVE_UP}"
    if is_another(forward.destination_id, replica.destination_id):
        return f"topic {replica.destination_topic} was deleted and made anew since it was written to: {GIVE_UP}"
    if forward.copy_end is None:
        return f"its position does not say where the link's last transaction in {copy} ended: {GIVE_UP}"
    own = forward.copy_end.producer_id == ANYBODY
    if LOST in forward.stopped or (UNACCOUNTED in forward.stopped and not own):
        return forward.stopped
    return ""


def has_moved(replica: Replica, reverse: Position) -> str:
    """The reason that what was copied back already is not of these topics; empty when it is."""
    if is_another(reverse.source_id, replica.destination_id) or is_another(reverse.destination_id, replica.source_id):
        return f"its topic or the copy's was deleted and made anew since it was copied back: {GIVE_UP}"
    return ""


def returned(
    replica: Replica, forward: Position | None, reverse: Position | None, copy_end: CopyEnd, open_from: int
) -> Position | Refusal:
    """Plan the link's position after the way back, given the copy's end and stable end as found after fencing.

    Whoever writes to the copy after that end is not the link.

    The stable end, ``open_from``, lies before the end while a transaction is open in the copy. Records of the copy that
    are not in the source yet are refused: the position's end of the copy would hide them for ever.
    """
    copy = f"{replica.destination_topic}-{replica.partition}"
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
    held = forward or Position(replica.source_id, replica.destination_id, reverse.copy_end.offset)
    moved = held.go_on().begin_again(replica.source_id, replica.destination_id, reverse.copy_end.offset)
    end = replace(copy_end, producer_id=ANYBODY)
    return replace(moved, copy_end=end, tail=OffsetTail.begin(moved.next_offset, end.offset))


def given_back(reverse: Iterable[Segment], begin: int) -> list[Segment]:
    """The map of what was copied back, as the link's: of the source from offset ``begin`` on."""
    return [
        Segment(each.destination_id, each.source_id, each.stretch.swapped())
        for each in reverse
        if each.stretch.copy_to > begin
    ]


def lost_begin(reverse: Iterable[Segment], held: Position, begun: Gap, forward: Position | None) -> int | None:
    """The copy's offset from which on the source has lost again what was copied back; None where nobody knows.

    The map of what was copied back ends at what is left of it. Where all is lost the way back begins as it began.
    """
    left = held.tail.copy_to if held.tail else UNKNOWN
    for each in reverse:
        if not each.stretch.is_empty and each.stretch.copy_to == left:
            return each.stretch.source_to
    as_it_was = forward is not None and forward.next_offset == begun.first and left == begun.next
    return forward.copy_end.offset if as_it_was and forward and forward.copy_end else None
