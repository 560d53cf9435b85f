"""The states of a lane, as a table: the look-up is the check, the documentation is drawn from it.

A lane's life: it fences its predecessor, and only then reads its positions (invariant C); it copies until any answer is
doubtful, and then restarts with a new epoch. Fenced is the end, unless nobody else has the lane: then the coordinator
gave up our transaction, or the operator changed a position.
"""

import enum
from collections.abc import Mapping
from typing import Generic, TypeVar


class LaneState(enum.Enum):
    """The states of a lane."""

    COLD = "cold"
    FENCING = "fencing"
    READING = "reading"
    COPYING = "copying"
    FENCED = "fenced"


class LaneEvent(enum.Enum):
    """The events of a lane."""

    START = "start"
    EPOCH_GRANTED = "epoch granted"
    POSITIONS_READ = "positions read"
    DOUBT = "doubt"
    FENCED = "fenced"
    NOBODY_ELSE = "nobody else has it"


LANE: Mapping[LaneState, Mapping[LaneEvent, LaneState]] = {
    LaneState.COLD: {LaneEvent.START: LaneState.FENCING},
    LaneState.FENCING: {
        LaneEvent.EPOCH_GRANTED: LaneState.READING,
        LaneEvent.DOUBT: LaneState.COLD,
        LaneEvent.FENCED: LaneState.FENCED,
    },
    LaneState.READING: {
        LaneEvent.POSITIONS_READ: LaneState.COPYING,
        LaneEvent.DOUBT: LaneState.COLD,
        LaneEvent.FENCED: LaneState.FENCED,
    },
    LaneState.COPYING: {
        LaneEvent.DOUBT: LaneState.COLD,
        LaneEvent.FENCED: LaneState.FENCED,
    },
    LaneState.FENCED: {LaneEvent.NOBODY_ELSE: LaneState.COLD},
}

State = TypeVar("State", bound=enum.Enum)
Event = TypeVar("Event", bound=enum.Enum)


class StateMachine(Generic[State, Event]):
    """A state that moves only as its table says."""

    def __init__(self, table: Mapping[State, Mapping[Event, State]], state: State) -> None:
        self._table = table
        self.state = state

    def on(self, event: Event) -> State:
        """Move.

        Raises:
            KeyError: the table has no such move: a defect of ours.
        """
        self.state = self._table[self.state][event]
        return self.state
