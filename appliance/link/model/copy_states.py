"""The states of a link's copies, as a table, and their records; each lane obeys what its own checkpoint says.

A state belongs to one source topic, or to the link: then it holds for every topic without its own record, and for
future topics. A copy grows only in ``active``. ``failing over`` precedes ``promoted``: every lane has been fenced,
nothing is final, and a killed command is run again. The same holds for ``resetting``, whose record says where copying
continues. If the table has no move for an event, the topic stays as it is.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

LINK = ""
"""The link in place of a topic's name; no topic has this name."""

_WAS_PROMOTED = "was_promoted"
"""Detail of every state after a promotion, until what was written to the copy has gone back to its source topic."""


class CopyState(enum.StrEnum):
    """The states of a copy."""

    ACTIVE = "active"
    PAUSED = "paused"
    FAILING_OVER = "failing over"
    PROMOTED = "promoted"
    FAILING_BACK = "failing back"
    RESETTING = "resetting"
    REMOVED = "removed"
    DELETED = "deleted"

    @property
    def follows(self) -> bool:
        """True while the copy belongs to the link: nobody else writes it, and groups are copied to it."""
        return self in (CopyState.ACTIVE, CopyState.PAUSED)

    @property
    def is_unfinished(self) -> bool:
        """True while a command has work left in the lanes, as it found them."""
        return self in (CopyState.FAILING_OVER, CopyState.FAILING_BACK, CopyState.RESETTING, CopyState.DELETED)


class CopyEvent(enum.Enum):
    """The events of a copy: an operator's commands, or their ends."""

    PAUSE = "pause"
    RESUME = "resume"
    FAIL_OVER = "fail over"
    PROMOTED = "promoted"
    FAIL_BACK = "fail back"
    RETURNED = "returned"
    GIVEN_UP = "given up"
    RESET = "reset"
    POSITIONED = "positioned"
    POSITIONED_PAUSED = "positioned, as it was paused"
    REMOVE = "remove"
    RESTORE = "resume removed"
    DELETE = "delete the link"


_GIVE_UP = {CopyEvent.REMOVE: CopyState.REMOVED, CopyEvent.DELETE: CopyState.DELETED}

COPY: Mapping[CopyState, Mapping[CopyEvent, CopyState]] = {
    CopyState.ACTIVE: {
        CopyEvent.PAUSE: CopyState.PAUSED,
        CopyEvent.FAIL_OVER: CopyState.FAILING_OVER,
        CopyEvent.RESET: CopyState.RESETTING,
        **_GIVE_UP,
    },
    CopyState.PAUSED: {
        CopyEvent.RESUME: CopyState.ACTIVE,
        CopyEvent.FAIL_OVER: CopyState.FAILING_OVER,
        CopyEvent.RESET: CopyState.RESETTING,
        **_GIVE_UP,
    },
    CopyState.FAILING_OVER: {CopyEvent.PROMOTED: CopyState.PROMOTED, CopyEvent.GIVEN_UP: CopyState.ACTIVE},
    CopyState.PROMOTED: {CopyEvent.FAIL_BACK: CopyState.FAILING_BACK, **_GIVE_UP},
    CopyState.FAILING_BACK: {
        CopyEvent.RETURNED: CopyState.ACTIVE,
        CopyEvent.GIVEN_UP: CopyState.PROMOTED,
        **_GIVE_UP,
    },
    CopyState.RESETTING: {
        CopyEvent.POSITIONED: CopyState.ACTIVE,
        CopyEvent.POSITIONED_PAUSED: CopyState.PAUSED,
        CopyEvent.FAIL_OVER: CopyState.FAILING_OVER,
        **_GIVE_UP,
    },
    CopyState.REMOVED: {CopyEvent.RESTORE: CopyState.ACTIVE, CopyEvent.DELETE: CopyState.DELETED},
    CopyState.DELETED: {},
}


@dataclass(frozen=True, slots=True)
class StateRecord:
    """The state of a source topic's copy, or of the link, since ``since`` in milliseconds, by user@host.

    ``change`` is the id of the command's run that made it. ``details`` are the state's own data, as JSON values.
    """

    topic: str
    state: CopyState
    since: int
    by: str
    why: str = ""
    change: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """The topic, or the link, for people."""
        return self.topic or "the link"

    @property
    def is_or_was_promoted(self) -> bool:
        """True of a copy that may hold what is nowhere else."""
        promoted = self.state in (CopyState.PROMOTED, CopyState.FAILING_BACK)
        return promoted or bool(self.details.get(_WAS_PROMOTED))


States = Mapping[str, StateRecord]
"""The records of a lane's checkpoint, by topic."""


def effective(states: States, topic: str) -> CopyState:
    """The state of a source topic's copy: its own, else the link's."""
    record = states.get(topic) or states.get(LINK)
    return record.state if record else CopyState.ACTIVE


@dataclass(frozen=True, slots=True)
class StateChange:
    """The records that an event changes, and the subjects for which the table has no such move."""

    records: tuple[StateRecord, ...] = ()
    kept: Mapping[str, CopyState] = field(default_factory=dict)

    @property
    def names(self) -> str:
        """The changed subjects, for people."""
        return ", ".join(record.subject for record in self.records)


Details = Callable[[str, CopyState], Mapping[str, Any]]
"""Returns the details of a new state, from a topic and its state before."""


def no_details(_: str, __: CopyState) -> Mapping[str, Any]:
    """Return nothing: most states need no details."""
    return {}


def change(
    states: States,
    topics: Iterable[str] | None,
    event: CopyEvent,
    stamp: StateRecord,
    details: Details = no_details,
) -> StateChange:
    """Apply an event to some topics, or with None to the link and to each topic with its own record.

    ``stamp`` says since when, by whom and why; its other fields are replaced. A topic already in the event's target
    state is neither changed nor among those kept.
    """
    subjects = sorted({LINK, *states} if topics is None else set(topics))
    leads_to = {target for moves in COPY.values() if (target := moves.get(event))}
    records: list[StateRecord] = []
    kept: dict[str, CopyState] = {}
    for subject in subjects:
        before = effective(states, subject)
        after = COPY[before].get(event)
        if after is not None:
            needs = {**_remembered(states, subject, event), **details(subject, before)}
            records.append(replace(stamp, topic=subject, state=after, details=needs))
        elif before not in leads_to:
            kept[subject] = before
    return StateChange(tuple(records), kept)


def _remembered(states: States, subject: str, event: CopyEvent) -> Mapping[str, Any]:
    """The details that outlast an event; by a failback all that was written to a copy goes back."""
    record = states.get(subject) or states.get(LINK)
    if record is None or not record.is_or_was_promoted or event in (CopyEvent.FAIL_BACK, CopyEvent.RETURNED):
        return {}
    return {_WAS_PROMOTED: True}
