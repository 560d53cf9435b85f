"""A change of a position by the operator (invariant D): where copying continues, and the gap that this leaves."""

import enum
from dataclasses import dataclass, replace

from appliance.errors import SettingsError
from appliance.kafka.protocol.metadata import is_another
from appliance.link.model.agreement import MADE_ANEW
from appliance.link.model.checkpoint import Gap
from appliance.link.model.position import LOST, NO_PLACE, UNACCOUNTED, UNKNOWN, CopyEnd, Position, SourcePlace
from appliance.link.model.replicas import Replica
from appliance.timestamps import since_1970

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
        """Read ``earliest``, ``latest``, an offset, milliseconds with ``ms`` behind them, or a time of ISO 8601."""
        if text in (Kind.EARLIEST.value, Kind.LATEST.value):
            return cls(text, Kind(text))
        number = text.removesuffix(_MILLISECONDS)
        if number.isdecimal() and len(number) < 20 and int(number) <= _LARGEST:
            return cls(text, Kind.OFFSET if number == text else Kind.TIME, int(number))
        try:
            return cls(text, Kind.TIME, since_1970(text))
        except ValueError as error:
            raise SettingsError([f"{option} {text}: expected {PLACES}"]) from error


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one partition from its ``position`` to another; the offset ``before`` is -1 when unknown.

    With ``cut`` nothing of its map of offsets holds any more. ``diverged`` is the source offset from which on the
    source holds other records than were copied, if it does. With ``from_first`` all that the source has is copied.
    """

    replica: Replica
    position: Position
    after: Position
    cut: bool = False
    diverged: int | None = None
    from_first: bool = False

    def __str__(self) -> str:
        """Its effect, in one line."""
        where = f"{self.replica.name} goes on from offset {self.after.next_offset:,}"
        if self.before == UNKNOWN:
            return f"{where} behind what {self.replica.copy} holds"
        if self.anew:
            return f"{where}; it had stopped at {self.before} of a topic that was made anew since"
        if self.left_out:
            return f"{where}; it had stopped at {self.before}: {self.left_out} offsets are left out"
        if self.copied_again:
            return f"{where}; it had stopped at {self.before}: {self.copied_again} offsets are copied again"
        return f"{where}; it had stopped at {self.before}"

    @property
    def before(self) -> int:
        """The source offset at which it stands."""
        return self.position.next_offset

    @property
    def anew(self) -> bool:
        """True if it continues with another topic than that of ``before``."""
        return is_another(self.position.source_id, self.replica.source_id)

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

    @property
    def lost_end(self) -> CopyEnd | None:
        """The end of the copy before it lost records; None if nothing is said of a loss, or it was made anew."""
        return self.position.copy_end if self.position.has_stopped_for(LOST) and not self._has_another_copy else None

    @property
    def _has_another_copy(self) -> bool:
        return is_another(self.position.destination_id, self.replica.destination_id)

    @property
    def _lost(self) -> str:
        """The reason that records which were copied are not in the copy any more, nor copied again; empty if none."""
        if self.before in (UNKNOWN, 0) or (self.after.next_offset == 0 and not self.anew):
            return ""
        if self._has_another_copy:
            had_any = self.position.records or (self.position.copy_end and self.position.copy_end.offset)
            return f"destination topic {self.replica.destination_topic} {MADE_ANEW}" if had_any else ""
        return self.position.stopped if self.position.has_stopped_for(LOST) else ""

    def gap(self, now: int) -> Gap | None:
        """The entry of the gap ledger for the offsets that it skips, and for what the copy had lost (F); None without.

        The offsets of what is unknown are an empty range where copying goes on.
        """
        start = self.after.next_offset
        first, following = min(self.before, start), min(self.before, start)
        went_on = f"the operator went on from offset {start}"
        if self.before == UNKNOWN:
            if self.from_first or not self.position.stopped:
                return None
            first, following = start, start
            went_on += ", and nobody knows which ones below it are copied"
        elif self.anew:
            first, following = self.before, -1
        elif self.left_out:
            first, following = self.agreed, start
        else:
            went_on = ""
        cause = "; ".join(filter(None, (went_on, self._lost)))
        return Gap(self.replica.source, self.position.source_id, first, following, cause, now) if cause else None


def moved(replica: Replica, position: Position | None, place: SourcePlace, *, from_first: bool = False) -> Change:
    """The change after which a partition goes on from a place, whatever has stopped it.

    The end of its copy is looked up again where the partition has stopped for its copy's sake. Otherwise it stays: a
    loss that nobody has noticed yet is noticed by it at the lane's next start (invariant J).
    """
    before = position or no_position(replica)
    after = before.go_on().begin_again(replica.source_id, replica.destination_id, place)
    lost = before.has_stopped_for(LOST)
    if lost or before.has_stopped_for(UNACCOUNTED) or before.next_offset == UNKNOWN:
        after = replace(after, copy_end=None, tail=after.tail if lost else None)  # nobody says else where the copy ends
    return Change(replica, before, after, from_first=from_first)


def retried(replica: Replica, position: Position) -> Change:
    """The change after which a partition goes on where it stands."""
    change = Change(replica, position, position.go_on())
    return change if change.lost_end is None else replace(change, after=replace(change.after, copy_end=None))


def no_position(replica: Replica) -> Position:
    """The position of a partition that has none."""
    return Position(replica.source_id, replica.destination_id, *NO_PLACE)
