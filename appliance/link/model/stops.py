"""The stops of partitions and topics: each kind, known by the words of its reason, with the commands that end it."""

import enum
import re
from dataclasses import dataclass

from appliance.link.model.position import LOST, UNACCOUNTED, UNKNOWN, own_words
from appliance.program import command_line, quoted, topic_option

FOLLOWING = "what follows begins at offset"
"""Ends a reason, with the source offset past the records that cannot be copied."""

_DIGITS_MAX = 19
"""Digits of the largest offset; Python reads no number of thousands."""

_LARGER = "raise max.message.bytes"
SETTINGS = {
    "MESSAGE_TOO_LARGE": _LARGER,
    "RECORD_LIST_TOO_LARGE": _LARGER,
    "INVALID_TIMESTAMP": "raise message.timestamp.before.max.ms and message.timestamp.after.max.ms",
    "INVALID_RECORD": "if they have no keys, take compact out of cleanup.policy",
}
"""The setting to change where a topic refuses records, by the broker's code."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """The effect of a command, and its arguments. OFFSET stands for an offset that only the operator knows."""

    effect: str
    arguments: str

    @property
    def command(self) -> str:
        """The command as it is typed where this process runs."""
        return command_line(self.arguments)

    def __str__(self) -> str:
        return f"{self.effect}: `{self.command}`"


_ONE = "resume {topic} --partition {partition}"
_FIRST = Remedy("go on at the source's first record; what it lost goes to the gap ledger", f"{_ONE} --from earliest")
_AGAIN = Remedy("copy all that the source has, behind what the copy holds", f"{_ONE} --from earliest")
_LATEST = Remedy("leave out what the source has now; it goes to the gap ledger", f"{_ONE} --from latest")
_MENDED = Remedy("when that is mended, go on where it stopped", _ONE)
_PASS = Remedy("leave out what is before {following}; it goes to the gap ledger", f"{_ONE} --from {{following}}")
_HERE = Remedy("go on from the position, behind what the copy holds", f"{_ONE} --from {{position}}")
_DIVERGED = Remedy("copy what the source has written since its loss", f"{_ONE} --from {{diverged}}")
_AFTER_LOSS = Remedy("go on after the loss, which goes to the gap ledger", _ONE)
_FAILOVER = Remedy("bring back what the producer wrote: first", "failover {topic}")
_FAILBACK = Remedy("and then", "failback {topic}")
_NAMED = Remedy("restart the links into the source, which leave their names, and then this one; then go on", _ONE)
_TAKE_OVER = Remedy("when that link is no more, take its copy over", "resume {topic} --from earliest --take-over")


class StopKind(enum.Enum):
    """The kinds of stops, each with words of its reason, also of older releases', and the remedies; the first holds."""

    RECREATED = "was deleted and made anew", (_FIRST,)
    LOST_ON_BOTH = "; the source has lost records that were copied", (_DIVERGED, _AGAIN)
    LOST = LOST, (_AFTER_LOSS, _AGAIN)
    AFTER_FAILBACK = "a producer wrote there after the failback", (_HERE, _FAILOVER, _FAILBACK)
    UNACCOUNTED = UNACCOUNTED, (_HERE, _LATEST)
    NO_POSITION = "no position says how far", (_AGAIN, _LATEST)
    DELETED = "were deleted at the source before they were copied", (_FIRST,)
    TRUNCATED = "the source's log was truncated", (_DIVERGED, _LATEST)
    LOST_AT_SOURCE = "the source has lost records that were copied", (_DIVERGED, _LATEST)
    REFUSED = " is refused: ", (_MENDED, _PASS)
    NOT_TRANSFORMED = "fails in the SQL of", (_MENDED, _PASS)
    WRITERS_UNKNOWN = "who wrote its batches is not known", (_NAMED, _LATEST)
    ANOTHERS = "belongs to link", (_TAKE_OVER,)
    UNREADABLE = "", (_MENDED, _PASS)

    def __init__(self, words: str, remedies: tuple[Remedy, ...]) -> None:
        self.words = words
        self.remedies = remedies
        self.needs_place = "--from" in remedies[0].arguments


@dataclass(frozen=True, slots=True)
class Stop:
    """A stopped partition, or with None a topic of which nothing is copied; ``offset`` is the next one to copy."""

    reason: str
    topic: str
    partition: int | None = None
    offset: int | None = None

    @property
    def kind(self) -> StopKind:
        """The first kind whose words the reason has."""
        words = own_words(self.reason)
        return next(kind for kind in StopKind if kind.words in words)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The commands that end the stop, the best one first; of a topic often none: its reason says what to change."""
        if self.partition is None and self.kind is not StopKind.ANOTHERS:
            return ()
        words = {
            "topic": quoted(topic_option(self.topic)),
            "partition": self.partition,
            "position": "earliest" if self.offset in (None, UNKNOWN) else self.offset,
            "following": self._following or "OFFSET",
            "diverged": self._offset(r"(?:from|copied:) offsets? (\d+) (?:on it|to)") or "OFFSET",
        }
        each = [(remedy.effect.format(**words), remedy.arguments.format(**words)) for remedy in self.kind.remedies]
        return tuple(Remedy(*texts) for texts in each)

    @property
    def _following(self) -> str:
        """The offset past what cannot be copied: of a record that the SQL fails on, that of the next one."""
        at = self._offset(r"^\S+ offset (\d+) (?:is damaged|fails)", 1) or self._offset(FOLLOWING + r" (\d+)$")
        return at or self._offset(r"^\S+ offset (\d+) is", 1)

    def _offset(self, pattern: str, more: int = 0) -> str:
        match = re.search(pattern, self.reason)
        return str(int(match[1]) + more) if match and len(match[1]) <= _DIGITS_MAX else ""
