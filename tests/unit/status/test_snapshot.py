import json
from dataclasses import replace

import pytest

from appliance.link.model.copy_states import LINK, CopyState, StateRecord
from appliance.status.model.document import document
from appliance.status.model.metrics import exposition
from appliance.status.model.snapshot import LinkState
from appliance.status.model.topic_status import total
from tests.support.facts import DESTINATION, NOW, SILENT, snapshot


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    assert total([1, 2]) == 3
    assert total([1, None, 2]) is None
    assert total([]) is None


def test_only_copied_copying_and_inactive_links_are_well() -> None:
    assert {state for state in LinkState if state.well} == {LinkState.COPIED, LinkState.COPYING, LinkState.INACTIVE}


@pytest.mark.parametrize("silent", ["source", "destination"])
def test_a_topic_is_as_unknown_as_its_partitions(silent: str) -> None:
    (topic,) = snapshot(**{silent: SILENT}).topics
    assert (topic.lag_records, topic.lag_seconds) == (None, None)


def test_a_state_that_an_operator_has_given_is_shown_with_when_by_whom_and_why() -> None:
    paused = StateRecord(LINK, CopyState.PAUSED, NOW - 1000, "me@host", "a new disk", "c1")
    behind = replace(DESTINATION, states={LINK: paused}, positions={})
    taken = snapshot(destination=behind)
    assert taken.state is LinkState.INACTIVE
    read = json.loads(json.dumps(document(taken)))
    at = "2027-01-15T07:59:59.000Z"
    assert read["states"] == [{"topic": None, "state": "paused", "since": at, "by": "me@host", "why": "a new disk"}]
    assert [topic["state"] for topic in read["topics"]] == ["paused"]
    assert f"the link: paused since {at} by me@host: a new disk" in read["remarks"]
    assert b'kafka_replicator_topic_state{state="paused",topic="payments"} 1.0' in exposition(taken, fresh=True)


def test_a_topic_that_is_promoted_keeps_no_other_from_being_copied() -> None:
    promoted = StateRecord("orders", CopyState.PROMOTED, NOW - 1000, "me@host")
    assert snapshot(destination=replace(DESTINATION, states={"orders": promoted})).state is LinkState.COPIED
