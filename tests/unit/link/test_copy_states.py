from dataclasses import replace

import pytest

from appliance.link.model.copy_states import COPY, LINK, CopyEvent, CopyState, StateRecord, change, effective

STAMP = StateRecord(LINK, CopyState.ACTIVE, 9, "me@host", "a drill", "c1")


def in_state(topic: str, state: CopyState) -> StateRecord:
    return replace(STAMP, topic=topic, state=state)


def test_every_state_has_its_row_and_can_be_reached() -> None:
    assert set(COPY) == set(CopyState)
    assert {target for row in COPY.values() for target in row.values()} == set(CopyState)


def test_every_event_is_of_use() -> None:
    assert {event for row in COPY.values() for event in row} == set(CopyEvent)


def test_no_way_leads_to_promoted_but_through_fenced_lanes() -> None:
    ways = {(state, event) for state, row in COPY.items() for event, to in row.items() if to is CopyState.PROMOTED}
    assert ways == {(CopyState.FAILING_OVER, CopyEvent.PROMOTED), (CopyState.FAILING_BACK, CopyEvent.GIVEN_UP)}


def test_a_copy_that_was_promoted_grows_again_only_after_its_own_records_have_gone_back() -> None:
    ways = {(state, event) for state, row in COPY.items() for event, to in row.items() if to is CopyState.ACTIVE}
    assert CopyState.PROMOTED not in {state for state, _ in ways}
    assert (CopyState.FAILING_BACK, CopyEvent.RETURNED) in ways


def test_a_topic_has_its_own_state_else_the_links_else_it_is_active() -> None:
    states = {LINK: in_state(LINK, CopyState.PAUSED), "orders": in_state("orders", CopyState.PROMOTED)}
    assert effective({}, "orders") is CopyState.ACTIVE
    assert effective(states, "orders") is CopyState.PROMOTED
    assert effective(states, "to come") is CopyState.PAUSED


def test_a_command_for_all_changes_the_link_and_each_topic_with_a_state_of_its_own() -> None:
    states = {"orders": in_state("orders", CopyState.PAUSED)}
    made = change(states, None, CopyEvent.FAIL_OVER, STAMP)
    assert made.records == (in_state(LINK, CopyState.FAILING_OVER), in_state("orders", CopyState.FAILING_OVER))
    assert not made.kept


def test_a_promoted_topic_stays_promoted_when_all_others_are_resumed() -> None:
    states = {LINK: in_state(LINK, CopyState.PAUSED), "orders": in_state("orders", CopyState.PROMOTED)}
    made = change(states, None, CopyEvent.RESUME, STAMP)
    assert made.records == (in_state(LINK, CopyState.ACTIVE),)
    assert made.kept == {"orders": CopyState.PROMOTED}


def test_a_topic_gets_a_state_of_its_own_by_the_state_that_the_link_has() -> None:
    states = {LINK: in_state(LINK, CopyState.PROMOTED)}
    assert change(states, ["orders"], CopyEvent.FAIL_BACK, STAMP).records == (
        in_state("orders", CopyState.FAILING_BACK),
    )


@pytest.mark.parametrize("event", CopyEvent)
def test_the_same_command_again_changes_nothing(event: CopyEvent) -> None:
    for state in CopyState:
        states = {LINK: in_state(LINK, state)}
        made = change(states, None, event, STAMP)
        after = states | {record.topic: record for record in made.records}
        assert not change(after, None, event, STAMP).records
        if made.records:
            assert not change(after, None, event, STAMP).kept


def test_what_is_removed_or_deleted_comes_back_by_its_own_word_alone() -> None:
    assert set(COPY[CopyState.REMOVED]) == {CopyEvent.RESTORE, CopyEvent.DELETE}
    assert not COPY[CopyState.DELETED]
    states = {"orders": in_state("orders", CopyState.REMOVED)}
    assert change(states, None, CopyEvent.RESUME, STAMP).kept == {"orders": CopyState.REMOVED}


def test_a_link_that_fails_over_is_not_deleted() -> None:
    kept = {state for state in CopyState if CopyEvent.DELETE not in COPY[state]} - {CopyState.DELETED}
    assert kept == {CopyState.FAILING_OVER}


def test_a_state_has_the_details_that_are_asked_for_with_the_state_before() -> None:
    states = {"orders": in_state("orders", CopyState.PAUSED)}
    made = change(states, ["orders"], CopyEvent.RESET, STAMP, lambda topic, before: {topic: before})
    assert made.records == (replace(in_state("orders", CopyState.RESETTING), details={"orders": CopyState.PAUSED}),)
