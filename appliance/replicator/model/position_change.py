"""A change of a position by the operator (invariant D): where copying continues, and the gap that this leaves."""

import enum
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from appliance.errors import SettingsError
from appliance.kafka.protocol.metadata import is_another
from appliance.link.model.checkpoint import Gap
from appliance.link.model.position import LOST, NO_PLACE, UNACCOUNTED, UNKNOWN, CopyEnd, Position, SourcePlace
from appliance.link.model.replicas import Replica

_MILLISECONDS = "ms"
_LARGEST = 2**63 - 1
"""The largest offset and time of Kafka's protocol."""

PLACES = "earliest, latest, a source offset, a time like 2026-11-25T08:00:00Z or milliseconds like 1764057600000ms"
"""The places that an operator may name."""


class Kind(enum.Enum):
    """The kinds of places in a source partition."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "an offset"
    TIME = "a time"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in source partitions, given by the operator; ``number`` is the offset, or the time in ms."""

    text: str
    kind: Kind
    number: int = -1

    @classmethod
    def parse(cls, option: str, text: str) -> "Place":
        """Read ``earliest``, ``latest``, an offset, milliseconds with ``ms`` behind them, or a time of ISO 8601.

        A time without a zone is UTC, as in Kafka's own commands.

        Raises:
            SettingsError: it is none of these.
        """
        if text in (Kind.EARLIEST.value, Kind.LATEST.value):
            return cls(text, Kind(text))
        number = text.removesuffix(_MILLISECONDS)
        if number.isdecimal() and len(number) < 20 and int(number) <= _LARGEST:
            return cls(text, Kind.OFFSET if number == text else Kind.TIME, int(number))
        try:
            time = datetime.fromisoformat(text)
        except ValueError as error:
            raise SettingsError([f"{option} {text}: expected {PLACES}"]) from error
        moment = time if time.tzinfo else time.replace(tzinfo=UTC)
        return cls(text, Kind.TIME, max(0, int(moment.timestamp() * 1000)))


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one partition; ``before`` is its offset until now, -1 when unknown.

    With ``anew`` it continues with another topic than that of ``before``. ``lost_end`` is the end that its copy had
    before it lost records, None if it has lost none. With ``cut`` nothing of its map of offsets holds any more.
    ``diverged`` is the source offset from which on the source holds other records than were copied, if it does.
    """

    replica: Replica
    before: int
    after: Position
    anew: bool = False
    lost_end: CopyEnd | None = None
    cut: bool = False
    diverged: int | None = None

    def __str__(self) -> str:
        """Its effect, in one line."""
        where = f"{self.replica.name} goes on from offset {self.after.next_offset}"
        if self.before == UNKNOWN:
            return f"{where} behind what {self.replica.destination_topic}-{self.replica.partition} holds"
        if self.anew:
            return f"{where}; it had stopped at {self.before} of a topic that was made anew since"
        if self.left_out:
            return f"{where}; it had stopped at {self.before}: {self.left_out} offsets are left out"
        if self.copied_again:
            return f"{where}; it had stopped at {self.before}: {self.copied_again} offsets are copied again"
        return f"{where}; it had stopped at {self.before}"

    @property
    def is_known(self) -> bool:
        """True if both offsets are known, and are of the same topic."""
        return self.before != UNKNOWN and not self.anew

    @property
    def left_out(self) -> int:
        """Number of source offsets that are never copied; 0 if unknown."""
        return max(0, self.after.next_offset - self.agreed) if self.is_known else 0

    @property
    def copied_again(self) -> int:
        """Number of source offsets that are copied once more; 0 if unknown."""
        return max(0, self.agreed - self.after.next_offset) if self.is_known else 0

    @property
    def agreed(self) -> int:
        """The first source offset that the copy does not hold as the source has it now."""
        return self.before if self.diverged is None else min(self.before, self.diverged)


def moved(replica: Replica, held: Position | None, place: SourcePlace) -> Change:
    """The change after which a partition goes on from a place, whatever has stopped it.

    The end of its copy is looked up again where the partition has stopped for its copy's sake. Otherwise it stays: a
    loss that nobody has noticed yet is noticed by it at the lane's next start (invariant J).
    """
    known = held or Position(replica.source_id, replica.destination_id, *NO_PLACE)
    after = known.go_on().begin_again(replica.source_id, replica.destination_id, place)
    if LOST in known.stopped or UNACCOUNTED in known.stopped or known.next_offset == UNKNOWN:
        tail = after.tail if LOST in known.stopped else None  # nobody says else where the copy ends
        after = replace(after, copy_end=None, tail=tail)
    anew = is_another(known.source_id, replica.source_id)
    lost = None if is_another(known.destination_id, replica.destination_id) else lost_end(known)
    return Change(replica, known.next_offset, after, anew, lost)


def lost_end(held: Position) -> CopyEnd | None:
    """The end of a copy before it lost records; None if its position says nothing of a loss."""
    return held.copy_end if LOST in held.stopped else None


def gap(change: Change, held: Position | None, found: int) -> Gap | None:
    """The entry of the gap ledger for the offsets that a change skips (F); None where none is skipped, or known."""
    if held is None or held.next_offset == UNKNOWN or not (change.anew or change.left_out):
        return None
    start = change.after.next_offset
    first, following = (held.next_offset, -1) if change.anew else (change.agreed, start)
    return Gap(
        change.replica.source, held.source_id, first, following, f"the operator went on from offset {start}", found
    )
