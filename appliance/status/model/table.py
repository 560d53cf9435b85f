"""The snapshot for a terminal: a table of topics, one of the partitions that need attention, and sentences below."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from appliance.groups.model.group_plan import GroupPlan, GroupState
from appliance.link.model.link_sql import SqlChange
from appliance.listing import number, totals
from appliance.status.model.messages import Subject, cluster_name, problems_by_subject, remarks, remedies, utc
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.model.state_words import (
    AT_TERMINAL,
    partition_state,
    partition_states,
    replicators,
    severity,
    topic_state,
    topic_summary,
)
from appliance.status.model.topic_status import PartitionStatus, TopicStatus, total
from appliance.tables import Group, RenderableType, Table, Text, cell, command, table

_PARTITIONS_MAX = 20
_LINES_MAX = 40


def rendered(snapshot: Snapshot) -> Group:
    """The text to print. It is limited, so that a link with thousands of partitions can be read; JSON has them all."""
    return Group(*_parts(snapshot))


def _parts(snapshot: Snapshot) -> Iterator[RenderableType]:
    state = snapshot.state
    yield cell(f"{_head(snapshot)} at {utc(snapshot.at)}", style="bold" if state.well else "bold red")
    for cluster in (snapshot.source, snapshot.destination):
        if not cluster.unknown:
            yield cell(f"{cluster_name(cluster)}: answers")
    if not snapshot.destination.unknown:
        yield cell(replicators(snapshot.replicators, snapshot.replicators_unknown))
    if snapshot.max_bytes_per_second:
        yield cell(f"bounded at {number(snapshot.max_bytes_per_second)} bytes/s")
    if snapshot.heartbeat:
        way = "unknown" if snapshot.heartbeat.way is None else f"{number(snapshot.heartbeat.way)} ms"
        yield cell(f"from source to destination: {way}, heartbeat of {utc(snapshot.heartbeat.at)}")
    if snapshot.sql:
        yield cell(_sql(snapshot.sql))
    yield from map(cell, _owners(snapshot))
    if snapshot.topics:
        yield _topics(sorted(snapshot.topics, key=lambda topic: _badness(topic_state(topic), topic)))
        yield cell(_totals(snapshot))
    behind = [partition for partition in snapshot.partitions if _needs_a_look(partition)]
    behind.sort(key=lambda partition: _badness(partition_state(partition), partition))
    if behind:
        yield _partitions(behind[:_PARTITIONS_MAX])
        yield from _rest(len(behind) - _PARTITIONS_MAX, "partitions")
    yield from _groups(snapshot)
    troubles = [line for subject, text in problems_by_subject(snapshot) for line in _with_remedies(text, subject)]
    for lines in (troubles, [*map(cell, remarks(snapshot))]):
        yield from lines[:_LINES_MAX]
        yield from _rest(len(lines) - _LINES_MAX, "lines")


def _with_remedies(problem: str, subject: Subject) -> Iterator[Text]:
    """The problem, and below it each effect that is to be had, with its command to copy."""
    yield cell(problem, style="red")
    for remedy in remedies(subject):
        yield cell(f"  {remedy.effect}:", style="red")
        yield command(f"    {remedy.command}")


def _head(snapshot: Snapshot) -> str:
    """The link and its state; of chosen topics that are not copied, the states that operators have given them."""
    if not snapshot.chosen:
        return f"{snapshot.replicator}: {snapshot.state}"
    states = ", ".join(sorted({topic.state for topic in snapshot.topics}))
    state = states if snapshot.state is LinkState.INACTIVE else snapshot.state
    return f"{snapshot.replicator}, {', '.join(snapshot.chosen)}: {state}"


def _sql(change: SqlChange) -> str:
    since = f"since {utc(change.since)} by run {change.run}"
    return f"SQL {change.sql.digest[:12]} {since}" if change.sql.text else f"records are copied as they are {since}"


def _rest(count: int, what: str) -> Iterator[Text]:
    if count > 0:
        yield cell(f"... and {number(count)} {what} more: --topic shows one topic, --json everything")


def _owners(snapshot: Snapshot) -> Iterator[str]:
    """The owner of each lane, consecutive lanes of one owner together."""
    for run, group in groupby(
        snapshot.lanes, key=lambda lane: (lane.owner.run, lane.owner.host) if lane.owner else None
    ):
        lanes = list(group)
        first, last = lanes[0].lane, lanes[-1].lane
        which = f"lane {first}" if first == last else f"lanes {first} to {last}"
        since = max((lane.owner.since for lane in lanes if lane.owner), default=0)
        yield f"{which}: {f'run {run[0]} on {run[1]} since {utc(since)}' if run else 'nobody has taken it yet'}"


def _badness(state: str, of: TopicStatus | PartitionStatus) -> tuple[int, float]:
    """The place in a list that has the worst first, and of the same state those that are furthest behind."""
    return severity(state), -(of.lag_records or 0)


def _totals(snapshot: Snapshot) -> str:
    states = (AT_TERMINAL.get(state, state) for topic in snapshot.topics for state in partition_states(topic))
    lag = total(topic.lag_records for topic in snapshot.topics if topic.active)
    return totals("partition", states, f"lag {number(lag)}")


def _topics(topics: Iterable[TopicStatus]) -> Table:
    numbers = ("partitions", "copied", "records/s", "lag", "lag seconds")
    rows = (
        (
            topic.name,
            topic.copy,
            number(len(topic.partitions)),
            number(topic.copied),
            number(topic.rate),
            number(topic.lag_records) if topic.active else "",
            number(topic.lag_seconds, 1) if topic.active else "",
            topic_summary(topic),
        )
        for topic in topics
    )
    hide = ("copy", "partitions", "copied", "records/s", "lag seconds")
    return table(("topic", "copy", *numbers, "state"), rows, right=numbers, hide=hide)


def _needs_a_look(partition: PartitionStatus) -> bool:
    return bool(partition.stopped or partition.held) or (partition.unknown is None and bool(partition.lag_records))


def _partitions(partitions: Iterable[PartitionStatus]) -> Table:
    numbers = ("lane", "next offset", "end offset", "lag", "lag seconds", "records/s")
    rows = (
        (
            partition.name,
            number(partition.lane),
            number(partition.next_offset),
            number(partition.end_offset),
            number(partition.lag_records),
            number(partition.lag_seconds, 1),
            number(partition.rate),
            _state(partition),
        )
        for partition in partitions
    )
    hide = ("lane", "end offset", "next offset", "records/s", "lag seconds")
    return table(("partition", *numbers, "state"), rows, right=numbers, hide=hide)


def _state(partition: PartitionStatus) -> str:
    state = partition_state(partition)
    return AT_TERMINAL.get(state, state)


def _groups(snapshot: Snapshot) -> Iterator[RenderableType]:
    """The groups whose positions differ from those at the source, and the number of all by their states."""
    if not snapshot.groups:
        return
    others = [group for group in snapshot.groups if group.state is not GroupState.SYNCED]
    if others:
        yield _group_table(others[:_PARTITIONS_MAX], snapshot.groups_unknown is None)
        yield from _rest(len(others) - _PARTITIONS_MAX, "groups")
    yield cell(totals("group", (group.state for group in snapshot.groups)))


def _group_table(groups: Iterable[GroupPlan], is_current: bool) -> Table:
    rows = (
        (group.name, group.kind, number(len(group.partitions)), number(group.lag if is_current else None), group.state)
        for group in groups
    )
    return table(
        ("group", "kind", "partitions", "lag", "state"), rows, right=("partitions", "lag"), hide=("kind", "partitions")
    )
