"""The plan of a failback: where the link in reverse begins, and where the link goes on after it. Pure.

The link in reverse copies from ``T.copy`` to ``T``. It begins where the link's last transaction in the copy ended, so
that it copies nothing back that came from ``T``. The link goes on where the reverse one has ended in ``T``, and not at
the log's end: what a producer has written to ``T`` since then is copied.
"""

from dataclasses import dataclass, replace

from appliance.kafka.protocol.metadata import is_another
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import LOST, UNACCOUNTED, UNKNOWN, CopyEnd, Position
from appliance.link.model.replicas import Replica


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason that a partition cannot be failed back as things are."""

    partition: str
    reason: str

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.partition}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Seed:
    """A partition's first position of the link in reverse.

    ``diverged`` are the offsets that the source holds, markers included, and that were never copied: from the first up
    to but without the second. They stay in the source's log, as Kafka cannot cut them out.
    """

    position: Position
    diverged: tuple[int, int]


def seed(replica: Replica, forward: Position | None, source_end: CopyEnd) -> Seed | Refusal:
    """Plan the beginning of a promoted partition's way back, given the end of its source's log as it was found.

    ``replica`` is the partition as both clusters have it now, and ``forward`` is the link's position of it.
    """
    if reason := _unusable(replica, forward):
        return Refusal(replica.name, reason)
    assert forward is not None
    assert forward.copy_end is not None
    if source_end.offset < forward.next_offset:
        return Refusal(
            replica.name,
            f"the source ends at offset {source_end.offset}, and was copied up to {forward.next_offset}: it has lost "
            "records, which only the copy has",
        )
    begin = forward.copy_end.offset
    tail = OffsetTail.begin(begin, source_end.offset)
    position = Position(replica.destination_id, replica.source_id, begin, copy_end=source_end, tail=tail)
    return Seed(position, (forward.next_offset, source_end.offset))


def _unusable(replica: Replica, forward: Position | None) -> str:
    """The reason that nobody knows where the copy's own records begin; empty when it is known."""
    copy = f"{replica.destination_topic}-{replica.partition}"
    if forward is None or forward.next_offset == UNKNOWN:
        return f"no position says how far it was copied, so what {copy} holds of its own is not known"
    if is_another(forward.source_id, replica.source_id):
        return f"topic {replica.source_topic} was deleted and made anew since it was copied"
    if is_another(forward.destination_id, replica.destination_id):
        return f"topic {replica.destination_topic} was deleted and made anew since it was written to"
    if LOST in forward.stopped or UNACCOUNTED in forward.stopped:
        return forward.stopped
    if forward.copy_end is None:
        return f"its position does not say where the link's last transaction in {copy} ended"
    return ""


def returned(
    replica: Replica, forward: Position, reverse: Position | None, copy_end: CopyEnd, open_from: int
) -> Position | Refusal:
    """Plan the link's position after the way back, given the copy's end and stable end as found after fencing.

    The stable end, ``open_from``, lies before the end while a transaction is open in the copy. Records of the copy that
    are not in the source yet are refused: the position's end of the copy would hide them for ever.
    """
    copy = f"{replica.destination_topic}-{replica.partition}"
    if reverse is None or reverse.copy_end is None:
        return Refusal(replica.name, f"nothing says how much of {copy} was copied back")
    if is_another(reverse.source_id, replica.destination_id) or is_another(reverse.destination_id, replica.source_id):
        return Refusal(replica.name, "its topic or the copy's was deleted and made anew since it was copied back")
    if reverse.stopped:
        return Refusal(replica.name, f"it is not copied back any further: {reverse.stopped}")
    if open_from < copy_end.offset:
        return Refusal(replica.name, f"a transaction is open in {copy} from offset {open_from} on")
    if reverse.next_offset != copy_end.offset:
        behind = f"{copy} ends at offset {copy_end.offset}, and is copied back up to {reverse.next_offset}"
        return Refusal(replica.name, f"{behind}: stop the producers there")
    moved = forward.go_on().begin_again(replica.source_id, replica.destination_id, reverse.copy_end.offset)
    return replace(moved, copy_end=copy_end, tail=OffsetTail.begin(moved.next_offset, copy_end.offset))
