"""Who copies: the members of a link's group, and the assignment that names the active one. Pure.

Kafka's group coordinator at the destination knows the members. The leader of the group assigns: the active member stays
active while it is there and ready, else the one that is ready for the longest time follows; where nobody is ready,
nothing changes. Each member carries the assignment
that it saw last, so that a new leader goes on from it. This is for progress alone: the lanes' epochs decide who writes
(invariant B), so a member with an outdated assignment harms nothing.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from appliance.output import printable

PROTOCOL_TYPE = "kafka-cloud-replicator"
PROTOCOL = "active-1"
SESSION_SECONDS = 10.0
"""Silence after which the coordinator gives a member up."""
REBALANCE_SECONDS = 3.0
"""Time for all members to join again, and to take their assignment. One that died within that gets a new session."""
HEARTBEAT_SECONDS = 0.3
"""Pause between heartbeats: a member learns so late of a change of the group."""
STATES = ACTIVE, STANDS_BY, NOT_READY, LEAVING = "active", "standing by", "not ready", "leaving"
_WORD_MAX, _NUMBER_MAX = 256, 253_402_300_799_999
"""Bounds of what anybody with the right to join may say of a member: of a text, and of a time in milliseconds."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The active member: its run, its host and its place there, and since when; ``since`` is in milliseconds.

    ``number`` counts the hand-overs of the group. ``before`` is the host that was active before, empty for the first;
    ``reason`` is why it is no longer. ``members`` are the runs that the leader knew.
    """

    number: int = 0
    active: str = ""
    host: str = ""
    place: str = ""
    since: int = 0
    before: str = ""
    reason: str = ""
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A replicator's process in the group; ``since`` is the time of its start in milliseconds.

    A process that is started again has the ``place`` of its predecessor, by whose name the coordinator knows it.
    It is ``ready`` once it could copy at once, and ``leaving`` once it was asked to end. ``changes`` counts what it has
    said of itself: a coordinator asks the leader again only if a member's words have changed.
    """

    run: str
    host: str
    since: int
    place: str = ""
    release: str = ""
    ready: bool = False
    leaving: bool = False
    changes: int = 0
    seen: Assignment = field(default_factory=Assignment)


@dataclass(frozen=True, slots=True)
class Members:
    """The replicators of a link as the group's coordinator shows them; nobody copies if ``active`` is None."""

    members: Sequence[Member] = ()
    assignment: Assignment = field(default_factory=Assignment)

    @property
    def active(self) -> Member | None:
        """The member that copies."""
        return next((each for each in self.members if each.run == self.assignment.active), None)

    def state(self, member: Member) -> str:
        """The state of one of them, one of STATES."""
        if member.run == self.assignment.active:
            return ACTIVE
        return LEAVING if member.leaving else STANDS_BY if member.ready else NOT_READY

    def since(self, member: Member) -> int:
        """The time since which it copies, or does not, in milliseconds."""
        handed_over = member.host in (self.assignment.host, self.assignment.before)
        return max(member.since, self.assignment.since) if handed_over else member.since


def members_of(words: Collection[tuple[bytes, bytes]]) -> Members:
    """The members by their words and assignments, those of other programs left out."""
    members = sorted(filter(None, (decode_member(each) for each, _ in words)), key=lambda each: (each.since, each.run))
    assignments = filter(None, (decode_assignment(each) for _, each in words))
    return Members(members, max(assignments, key=lambda each: each.number, default=Assignment()))


def assign(members: Collection[Member], now: int) -> Assignment:
    """The assignment for these members, at least one; ``now`` is in milliseconds."""
    runs = tuple(sorted(each.run for each in members))
    latest = max((each.seen for each in members), key=lambda seen: (seen.active in runs, seen.since))
    staying = [each for each in members if not each.leaving] or members
    able = [each for each in staying if each.ready] or [each for each in staying if each.run == latest.active]
    if latest.active and (not able or any(each.run == latest.active for each in able)):
        return replace(latest, members=runs)
    chosen = min(able or staying, key=lambda each: (each.since, each.run))
    reason = _reason(latest, members) if latest.active else "the first one"
    since = max(now, latest.since + 1)  # the clocks of hosts may differ
    return Assignment(latest.number + 1, chosen.run, chosen.host, chosen.place, since, latest.host, reason, runs)


def _reason(latest: Assignment, members: Collection[Member]) -> str:
    """The reason that the active member of the latest assignment is so no longer."""
    for each in members:
        if each.run == latest.active:
            return f"{latest.host} was stopped" if each.leaving else f"{latest.host} is not ready"
    if any(each.place == latest.place for each in members):
        return f"{latest.host} has started again"
    return f"{latest.host} is gone, or silent"


def encode(words: Member | Assignment) -> bytes:
    """The JSON that stands in the group."""
    return json.dumps(asdict(words), separators=(",", ":")).encode()


def decode_member(words: bytes) -> Member | None:
    """A member's words; None if they are not those of a replicator. Fields that we do not know are left out."""
    values = _fields(Member, _document(words))
    if values is None:
        return None
    seen = _fields(Assignment, values.pop("seen", {}))
    return None if seen is None else Member(**values, seen=_assignment(seen))


def decode_assignment(words: bytes) -> Assignment | None:
    """The assignment as the group's leader has made it; None if it is no such."""
    values = _fields(Assignment, _document(words))
    return None if values is None else _assignment(values)


def _document(words: bytes) -> object:
    try:
        return json.loads(words)
    except (ValueError, RecursionError):
        return None


def _fields(kind: type[Member | Assignment], values: object) -> dict[str, Any] | None:
    """The known fields, if each has the type of our own; None otherwise."""
    if not isinstance(values, Mapping):
        return None
    expected = {"str": str, "int": int, "bool": bool, "Assignment": Mapping}
    known: dict[str, Any] = {}
    for each in fields(kind):
        name = each.type if isinstance(each.type, str) else each.type.__name__
        if each.name in values:
            if not isinstance(values[each.name], expected.get(name, list)):
                return None
            known[each.name] = _bounded(values[each.name])
    return known if {"run", "host", "since"} <= known.keys() or kind is Assignment else None


def _bounded(value: Any) -> Any:
    """A text as it prints, or a number, within the bounds."""
    if isinstance(value, str):
        return printable(value[:_WORD_MAX])[:_WORD_MAX]
    return min(max(value, 0), _NUMBER_MAX) if type(value) is int else value


def _assignment(values: Mapping[str, Any]) -> Assignment:
    return Assignment(**{**values, "members": tuple(_bounded(str(each)) for each in values.get("members", ()))})
