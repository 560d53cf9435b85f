"""The states of a lane and of a transaction, as tables: the look-up is the check, the documentation is drawn from them.

A lane's life: it fences its predecessor, and only then reads its positions (invariant C); it copies until something
is doubtful, and then begins anew with a new epoch, whatever the doubt was. Fenced is the end, unless nobody else has
the lane: then it was the coordinator that gave up our transaction, or the operator who changed a position.

A transaction's life: whatever is not ``COMMITTED`` is doubtful, and what is doubtful is aborted by the next epoch,
unless the coordinator had decided it; the positions, read after that, say which.
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


class TransactionState(enum.Enum):
    """The states of a transaction."""

    EMPTY = "empty"
    OPEN = "open"
    COPIES_SENT = "copies sent"
    POSITIONS_SENT = "positions sent"
    WRITTEN = "written"
    COMMITTED = "committed"
    DOUBTFUL = "doubtful"


class TransactionEvent(enum.Enum):
    """The events of a transaction."""

    PARTITIONS_ADDED = "partitions added"
    COPIES_SENT = "copies sent"
    POSITIONS_SENT = "positions sent"
    ACKNOWLEDGED = "all acknowledged"
    COMMIT_ANSWERED = "commit answered"
    DOUBT = "doubt"


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

TRANSACTION: Mapping[TransactionState, Mapping[TransactionEvent, TransactionState]] = {
    TransactionState.EMPTY: {
        TransactionEvent.PARTITIONS_ADDED: TransactionState.OPEN,
        TransactionEvent.DOUBT: TransactionState.DOUBTFUL,
    },
    TransactionState.OPEN: {
        TransactionEvent.COPIES_SENT: TransactionState.COPIES_SENT,
        TransactionEvent.DOUBT: TransactionState.DOUBTFUL,
    },
    TransactionState.COPIES_SENT: {
        TransactionEvent.POSITIONS_SENT: TransactionState.POSITIONS_SENT,
        TransactionEvent.DOUBT: TransactionState.DOUBTFUL,
    },
    TransactionState.POSITIONS_SENT: {
        TransactionEvent.ACKNOWLEDGED: TransactionState.WRITTEN,
        TransactionEvent.DOUBT: TransactionState.DOUBTFUL,
    },
    TransactionState.WRITTEN: {
        TransactionEvent.COMMIT_ANSWERED: TransactionState.COMMITTED,
        TransactionEvent.DOUBT: TransactionState.DOUBTFUL,
    },
    TransactionState.COMMITTED: {},
    TransactionState.DOUBTFUL: {},
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
