from dataclasses import replace

import pytest

from appliance.console.model.tables import PAGE_SIZE, Query, partitions_page, topics_page
from appliance.kafka.protocol.metadata import Partition
from appliance.status.model.facts import Log
from appliance.status.model.topic_status import TopicStatus
from tests.support.facts import first, snapshot, with_logs, with_position

COPIED = snapshot().topics[0]


def named(name: str, **changed: object) -> TopicStatus:
    return replace(COPIED, name=name, **changed)


def names(page: object) -> list[str]:
    return [row.name for row in page.rows]  # type: ignore[attr-defined]


def test_a_text_finds_names_that_hold_it_in_upper_or_lower_case() -> None:
    topics = [named("orders"), named("Reorders"), named("payments")]
    assert names(topics_page(topics, Query(text="ORDER"))) == ["Reorders", "orders"]


def test_the_states_of_all_rows_with_the_text_are_counted_and_one_can_be_chosen() -> None:
    stopped = snapshot(destination=with_position(stopped="a gap", stopped_at=1)).topics[0]
    page = topics_page([named("a"), named("b"), replace(stopped, name="c")], Query(state="stopped"))
    assert (names(page), page.count, page.states) == (["c"], 1, {"copied": 2, "stopped": 1})


@pytest.mark.parametrize("down", [False, True])
def test_what_is_unknown_comes_last_in_either_direction(down: bool) -> None:
    behind = snapshot(with_logs({Partition("payments", 0): Log(-1, 130, 130)})).topics[0]
    unknown = snapshot(source="silent", previous=snapshot()).topics[0]
    topics = [replace(unknown, name="unknown"), named("even"), replace(behind, name="behind")]
    found = names(topics_page(topics, Query(sort="lag", down=down)))
    assert found == (["behind", "even", "unknown"] if down else ["even", "behind", "unknown"])


def test_a_page_has_a_hundred_rows_and_the_last_one_has_the_rest() -> None:
    partitions = [replace(first(snapshot()), partition=number) for number in range(PAGE_SIZE + 5)]
    page = partitions_page(partitions, Query(page=2))
    assert [row.partition for row in page.rows] == list(range(PAGE_SIZE, PAGE_SIZE + 5))
    assert (page.count, page.pages) == (PAGE_SIZE + 5, 2)


def test_a_page_beyond_the_last_is_the_last_and_an_unknown_column_is_harmless() -> None:
    assert names(topics_page([COPIED], Query(page=9))) == ["payments"]
    assert topics_page([], Query(page=9)).rows == []
    assert names(topics_page([COPIED], Query(sort="nonsense"))) == ["payments"]
