"""The snapshot for a terminal: a table of topics, one of the partitions that need attention, and sentences below."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from appliance.groups.model.group_plan import GroupPlan, GroupState
from appliance.link.model.link_sql import SqlChange
from appliance.status.model.messages import cluster_name, problems_by_subject, remarks, remedies, utc
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.model.state_words import AT_TERMINAL, partition_state, topic_summary
from appliance.status.model.topic_status import PartitionStatus, TopicStatus
from appliance.tables import Group, RenderableType, Table, Text, cell, table

_UNKNOWN = "unknown"
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
    if snapshot.max_bytes_per_second:
        yield cell(f"bounded at {_count(snapshot.max_bytes_per_second)} bytes/s")
    if snapshot.heartbeat:
        way = _UNKNOWN if snapshot.heartbeat.way is None else f"{snapshot.heartbeat.way:,} ms"
        yield cell(f"from source to destination: {way}, heartbeat of {utc(snapshot.heartbeat.at)}")
    if snapshot.sql:
        yield cell(_sql(snapshot.sql))
    yield from map(cell, _owners(snapshot))
    if snapshot.topics:
        yield _topics(snapshot.topics)
    behind = [partition for partition in snapshot.partitions if _needs_a_look(partition)]
    if behind:
        yield _partitions(behind[:_PARTITIONS_MAX])
        yield from _rest(len(behind) - _PARTITIONS_MAX, "partitions")
    yield from _groups(snapshot)
    troubles = [
        line
        for subject, text in problems_by_subject(snapshot)
        for line in (text, *map("  {}".format, remedies(subject)))
    ]
    for sentences, style in ((troubles, "red"), (remarks(snapshot), "")):
        yield from (cell(sentence, style=style) for sentence in sentences[:_LINES_MAX])
        yield from _rest(len(sentences) - _LINES_MAX, "lines")


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
        yield cell(f"... and {count} {what} more: --topic shows one topic, --json everything")


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


def _topics(topics: Iterable[TopicStatus]) -> Table:
    numbers = ("partitions", "copied", "records/s", "lag", "lag seconds")
    rows = (
        (
            topic.name,
            topic.copy,
            str(len(topic.partitions)),
            _count(topic.copied),
            _count(topic.rate),
            _count(topic.lag_records) if topic.active else "",
            _seconds(topic.lag_seconds) if topic.active else "",
            topic_summary(topic),
        )
        for topic in topics
    )
    return table(("topic", "copy", *numbers, "state"), rows, right=numbers)


def _needs_a_look(partition: PartitionStatus) -> bool:
    return bool(partition.stopped or partition.held) or (partition.unknown is None and bool(partition.lag_records))


def _partitions(partitions: Iterable[PartitionStatus]) -> Table:
    numbers = ("lane", "next offset", "end offset", "lag", "lag seconds", "records/s")
    rows = (
        (
            partition.name,
            _count(partition.lane),
            _count(partition.next_offset),
            _count(partition.end_offset),
            _count(partition.lag_records),
            _seconds(partition.lag_seconds),
            _count(partition.rate),
            _state(partition),
        )
        for partition in partitions
    )
    return table(("partition", *numbers, "state"), rows, right=numbers)


def _state(partition: PartitionStatus) -> str:
    state = partition_state(partition)
    return AT_TERMINAL.get(state, state)


def _groups(snapshot: Snapshot) -> Iterator[RenderableType]:
    """The number of synced groups, and the groups whose positions differ from those at the source."""
    if not snapshot.groups:
        return
    others = [group for group in snapshot.groups if group.state is not GroupState.SYNCED]
    yield cell(f"groups: {_count(len(snapshot.groups))}, {_count(len(snapshot.groups) - len(others))} synced")
    if others:
        yield _group_table(others[:_PARTITIONS_MAX], snapshot.groups_unknown is None)
        yield from _rest(len(others) - _PARTITIONS_MAX, "groups")


def _group_table(groups: Iterable[GroupPlan], is_current: bool) -> Table:
    rows = (
        (group.name, group.kind, str(len(group.partitions)), _count(group.lag if is_current else None), group.state)
        for group in groups
    )
    return table(("group", "kind", "partitions", "lag", "state"), rows, right=("partitions", "lag"))


def _count(number: float | None) -> str:
    return _UNKNOWN if number is None else f"{number:,.0f}"


def _seconds(number: float | None) -> str:
    return _UNKNOWN if number is None else f"{number:,.1f}"
