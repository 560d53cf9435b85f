import pytest

from appliance.link.model.states import LANE, LaneEvent, LaneState, StateMachine


def test_every_state_has_its_row_and_can_be_reached() -> None:
    assert set(LANE) == set(LaneState)
    reached = {target for row in LANE.values() for target in row.values()}
    assert set(LaneState) - reached <= {LaneState.COLD}


def test_no_way_leads_to_reading_but_through_a_new_epoch() -> None:  # invariant C
    ways = [(state, event) for state, row in LANE.items() for event, to in row.items() if to is LaneState.READING]
    assert ways == [(LaneState.FENCING, LaneEvent.EPOCH_GRANTED)]
    ways = [(state, event) for state, row in LANE.items() for event, to in row.items() if to is LaneState.COPYING]
    assert ways == [(LaneState.READING, LaneEvent.POSITIONS_READ)]


def test_a_fenced_lane_stays_fenced_unless_nobody_else_has_it_and_then_begins_anew() -> None:  # invariant B
    ways_out = {event: to for event, to in LANE[LaneState.FENCED].items() if to is not LaneState.FENCED}
    assert ways_out == {LaneEvent.NOBODY_ELSE: LaneState.COLD}


def test_a_move_that_the_table_lacks_is_a_defect() -> None:
    with pytest.raises(KeyError):
        StateMachine(LANE, LaneState.COLD).on(LaneEvent.POSITIONS_READ)
