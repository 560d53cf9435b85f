from dataclasses import replace

import pytest

from appliance.console.model.tables import Query, topics_page
from appliance.console.model.worst import fact_since, headline, severity
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.problems import Fault
from appliance.status.model.facts import Log
from appliance.status.model.snapshot import Snapshot
from tests.support.console import of_size
from tests.support.facts import DESTINATION, NOW, SILENT, snapshot, with_logs, with_position


def test_the_worst_topics_come_first_and_equal_ones_keep_their_order_of_names() -> None:
    taken = of_size({"c-well": 1, "b-well": 1, "behind": 1, "far-behind": 1, "paused": 1, "stopped": 1}, stopped=0)
    changed = {
        "behind": {"partitions": (replace(taken.topics[0].partitions[0], lag_seconds=90.0),)},
        "far-behind": {"partitions": (replace(taken.topics[0].partitions[0], lag_seconds=9000.0),)},
        "paused": {"state": CopyState.PAUSED},
        "stopped": {"stopped": Fault("claimed", NOW)},
    }
    topics = sorted((replace(each, **changed.get(each.name, {})) for each in taken.topics), key=lambda each: each.name)
    rows = topics_page(topics, Query(sort="state")).rows
    assert [row.name for row in rows] == ["stopped", "far-behind", "behind", "paused", "b-well", "c-well"]


def test_a_lag_that_comes_and_goes_moves_no_row() -> None:
    assert severity("copying", 30.0) == severity("copied", 0.0)
    assert severity("copying", 70.0) == severity("copying", 100.0)
    assert severity("copied", 0.0) < severity("gone", 0.0)


def test_the_headline_counts_what_is_stopped() -> None:
    assert headline(of_size({"orders": 20, "payments": 23}, stopped=1)) == "2 of 43 partitions stopped"
    assert headline(of_size({"orders": 9_000}, stopped=3255)) == "3,255 of 9,000 partitions stopped"
    assert headline(snapshot()) == ""
    assert headline(snapshot(SILENT, previous=snapshot())) == "source cluster orange does not answer"
    stopped = replace(snapshot(), stopped=Fault("another cluster", NOW))
    assert headline(stopped) == "the link is stopped"
    (topic,) = snapshot().topics
    assert headline(replace(snapshot(), topics=(replace(topic, stopped=Fault("claimed", NOW)),))) == (
        "1 of 1 topics not copied"
    )
    paused = of_size({"orders": 2}, stopped=1)
    assert headline(replace(paused, topics=(replace(paused.topics[0], state=CopyState.PAUSED),))) == ""


PAUSED = {"": StateRecord("", CopyState.PAUSED, NOW - 700_000, "ann@vm", "")}
SINCE = {
    "the first stop": (snapshot(destination=with_position(stopped="a gap", stopped_at=NOW - 90_000)), NOW - 90_000),
    "the silence": (snapshot(SILENT, previous=snapshot(SILENT, now=NOW - 60_000), now=NOW), NOW - 60_000),
    "the pause": (snapshot(destination=replace(DESTINATION, states=PAUSED)), NOW - 700_000),
    "the last commit": (
        snapshot(destination=replace(DESTINATION, committed_at={Partition("payments", 1): NOW - 4000})),
        NOW - 4000,
    ),
    "nobody knows": (snapshot(with_logs({Partition("payments", 0): Log(-1, 130, 130)})), None),
}


@pytest.mark.parametrize(("taken", "since"), SINCE.values(), ids=SINCE)
def test_case_1470_since_is_the_time_of_the_fact(taken: Snapshot, since: int | None) -> None:
    """It was the time at which the control center had seen the state first: of all, after each of its restarts."""
    assert fact_since(taken) == since
