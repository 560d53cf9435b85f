"""The lines of a command that changes states."""

from appliance.commands.model.report import Report
from appliance.link.model.copy_states import LINK, CopyState, StateRecord


def test_a_topic_that_follows_the_link_into_its_state_has_no_line_of_its_own() -> None:
    def records(*states: tuple[str, CopyState]) -> tuple[StateRecord, ...]:
        return tuple(StateRecord(topic, state, 1, "me@here") for topic, state in states)

    link, once_paused_alone = (LINK, CopyState.PAUSED), ("orders", CopyState.PAUSED)
    assert list(Report("r", states=records(link, once_paused_alone)).lines()) == ["the link: paused"]
    assert list(Report("r", states=records(once_paused_alone)).lines()) == ["orders: paused"]
    promoted = records((LINK, CopyState.PROMOTED), ("orders", CopyState.PROMOTED))
    assert list(Report("r", states=promoted).lines()) == ["the link: promoted", "orders: promoted"]
