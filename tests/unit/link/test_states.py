import enum
from collections.abc import Mapping
from typing import Any

import pytest

from appliance.link.model.states import (
    LANE,
    TRANSACTION,
    LaneEvent,
    LaneState,
    StateMachine,
    TransactionEvent,
    TransactionState,
)


@pytest.mark.parametrize(("table", "states"), [(LANE, LaneState), (TRANSACTION, TransactionState)])
def test_every_state_has_its_row_and_can_be_reached(
    table: Mapping[Any, Mapping[Any, Any]], states: type[enum.Enum]
) -> None:
    assert set(table) == set(states)
    reached = {target for row in table.values() for target in row.values()}
    assert set(states) - reached <= {LaneState.COLD, TransactionState.EMPTY}


def test_no_way_leads_to_reading_but_through_a_new_epoch() -> None:  # invariant C
    ways = [(state, event) for state, row in LANE.items() for event, to in row.items() if to is LaneState.READING]
    assert ways == [(LaneState.FENCING, LaneEvent.EPOCH_GRANTED)]
    ways = [(state, event) for state, row in LANE.items() for event, to in row.items() if to is LaneState.COPYING]
    assert ways == [(LaneState.READING, LaneEvent.POSITIONS_READ)]


def test_a_fenced_lane_stays_fenced_unless_nobody_else_has_it_and_then_begins_anew() -> None:  # invariant B
    ways_out = {event: to for event, to in LANE[LaneState.FENCED].items() if to is not LaneState.FENCED}
    assert ways_out == {LaneEvent.NOBODY_ELSE: LaneState.COLD}


def test_a_transaction_commits_only_when_copies_and_positions_are_written() -> None:  # invariant A
    machine = StateMachine(TRANSACTION, TransactionState.EMPTY)
    for event in list(TransactionEvent)[:-1]:
        machine.on(event)
    assert machine.state is TransactionState.COMMITTED
    for state, row in TRANSACTION.items():
        commits = TransactionEvent.COMMIT_ANSWERED in row
        assert commits == (state is TransactionState.WRITTEN)


def test_any_doubt_ends_a_transaction() -> None:
    for state, row in TRANSACTION.items():
        if state not in (TransactionState.COMMITTED, TransactionState.DOUBTFUL):
            assert row[TransactionEvent.DOUBT] is TransactionState.DOUBTFUL


def test_a_move_that_the_table_lacks_is_a_defect() -> None:
    with pytest.raises(KeyError):
        StateMachine(LANE, LaneState.COLD).on(LaneEvent.POSITIONS_READ)
