"""Tables of topics, partitions and groups: searched, filtered, sorted, and one page of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from appliance.console.model.worst import severity
from appliance.groups.model.group_plan import GroupPlan
from appliance.status.model.state_words import partition_state, topic_state
from appliance.status.model.topic_status import PartitionStatus, TopicStatus

PAGE_SIZE = 100
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class Query:
    """The choice of a viewer: text in the name, a state, a column, a page from 1 on; ``down`` turns the order round.

    By ``state`` the worst topics and partitions come first.
    """

    text: str = ""
    state: str = ""
    sort: str = "name"
    down: bool = False
    page: int = 1


@dataclass(frozen=True, slots=True)
class TablePage(Generic[_Row]):
    """A page of the rows that a query has found; ``states`` counts all rows that have its text, by state."""

    query: Query
    rows: Sequence[_Row]
    count: int
    states: dict[str, int]

    @property
    def pages(self) -> int:
        """The number of pages, at least 1."""
        return max(1, math.ceil(self.count / PAGE_SIZE))


_TOPIC_COLUMNS: dict[str, Callable[[TopicStatus], Any]] = {
    "name": lambda topic: topic.name,
    "partitions": lambda topic: len(topic.partitions),
    "copied": lambda topic: topic.copied,
    "rate": lambda topic: topic.rate,
    "lag": lambda topic: topic.lag_records,
    "seconds": lambda topic: topic.lag_seconds,
    "state": lambda topic: severity(topic_state(topic), topic.lag_seconds),
}
_PARTITION_COLUMNS: dict[str, Callable[[PartitionStatus], Any]] = {
    "name": lambda partition: partition.partition,
    "lane": lambda partition: partition.lane,
    "next": lambda partition: partition.next_offset,
    "end": lambda partition: partition.end_offset,
    "copied": lambda partition: partition.copied,
    "rate": lambda partition: partition.rate,
    "lag": lambda partition: partition.lag_records,
    "seconds": lambda partition: partition.lag_seconds,
    "state": lambda partition: severity(partition_state(partition), partition.lag_seconds),
}
_GROUP_COLUMNS: dict[str, Callable[[GroupPlan], Any]] = {
    "name": lambda group: group.name,
    "kind": lambda group: group.kind,
    "partitions": lambda group: len(group.partitions),
    "lag": lambda group: group.lag,
    "state": lambda group: group.state,
}


def topics_page(topics: Sequence[TopicStatus], query: Query) -> TablePage[TopicStatus]:
    """A page of topics."""
    return _page(topics, query, _TOPIC_COLUMNS, topic_state, lambda topic: topic.name)


def partitions_page(partitions: Sequence[PartitionStatus], query: Query) -> TablePage[PartitionStatus]:
    """A page of a topic's partitions; the text is a part of the number."""
    return _page(partitions, query, _PARTITION_COLUMNS, partition_state, lambda partition: str(partition.partition))


def groups_page(groups: Sequence[GroupPlan], query: Query) -> TablePage[GroupPlan]:
    """A page of groups."""
    return _page(groups, query, _GROUP_COLUMNS, lambda group: group.state, lambda group: group.name)


def _page(
    rows: Sequence[_Row],
    query: Query,
    columns: dict[str, Callable[[_Row], Any]],
    state_of: Callable[[_Row], str],
    name_of: Callable[[_Row], str],
) -> TablePage[_Row]:
    text = query.text.lower()
    named = [(row, state_of(row)) for row in rows if text in name_of(row).lower()]
    states: dict[str, int] = {}
    for _, state in named:
        states[state] = states.get(state, 0) + 1
    matches = [row for row, state in named if query.state in ("", state)]
    value = columns.get(query.sort, columns["name"])
    # Unknown comes last in either direction: it is neither much nor little.
    ordered = sorted((row for row in matches if value(row) is not None), key=value, reverse=query.down)
    ordered += [row for row in matches if value(row) is None]
    page = min(max(1, query.page), max(1, math.ceil(len(matches) / PAGE_SIZE)))
    query, first = replace(query, page=page), (page - 1) * PAGE_SIZE
    return TablePage(query, ordered[first : first + PAGE_SIZE], len(matches), dict(sorted(states.items())))
