"""The states of topics and partitions in words, the worst first, and the replicators in a line."""

from collections.abc import Sequence

from appliance.link.model.copy_states import CopyState
from appliance.link.model.problems import Fault
from appliance.link.model.standby import Members
from appliance.listing import number, some
from appliance.status.model.snapshot import LinkState
from appliance.status.model.topic_status import PartitionStatus, TopicStatus
from appliance.timestamps import utc

HELD, GONE = "held", "gone"
AT_TERMINAL = {HELD: "held by a transaction", GONE: "no longer copied"}
"""The states that a terminal names otherwise."""


_WORST_FIRST: Sequence[str] = (LinkState.STOPPED, LinkState.FAILING, LinkState.UNKNOWN, HELD, LinkState.COPYING)


def severity(state: str) -> int:
    """The rank of a state in a list that has the worst first; all that need nobody share the last."""
    return _WORST_FIRST.index(state) if state in _WORST_FIRST else len(_WORST_FIRST)


def partition_state(partition: PartitionStatus) -> str:
    """The state of a partition in one word."""
    if partition.stopped:
        return LinkState.STOPPED
    if partition.unknown:
        return LinkState.UNKNOWN
    return HELD if partition.held else _progress(partition.lag_records)


def topic_state(topic: TopicStatus) -> str:
    """The state of a topic in one word; the worst of its partitions counts."""
    if topic.stopped or (topic.active and any(p.stopped for p in topic.partitions)):
        return LinkState.STOPPED
    if not topic.active:
        return GONE
    if any(partition.unknown for partition in topic.partitions):
        return LinkState.UNKNOWN
    if topic.state is not CopyState.ACTIVE:
        return topic.state
    return HELD if any(partition.held for partition in topic.partitions) else _progress(topic.lag_records)


def partition_states(topic: TopicStatus) -> list[str]:
    """The state of each partition: the topic's own one where that holds for all of them."""
    own = LinkState.STOPPED if topic.stopped else "" if topic.active else GONE
    if own or topic.state is CopyState.ACTIVE:
        return [own or partition_state(partition) for partition in topic.partitions]
    attention = (LinkState.STOPPED, LinkState.UNKNOWN)
    states = map(partition_state, topic.partitions)
    return [state if state in attention else topic.state for state in states]


def topic_summary(topic: TopicStatus) -> str:
    """A topic in a few words: its own state, or the numbers of partitions that need attention."""
    if topic.stopped:
        return "not copied"
    if not topic.active:
        return AT_TERMINAL[GONE]
    if topic.state is not CopyState.ACTIVE:
        return topic.state
    counts = {
        LinkState.UNKNOWN: sum(p.unknown is not None for p in topic.partitions),
        LinkState.STOPPED: sum(p.stopped is not None for p in topic.partitions),
        AT_TERMINAL[HELD]: sum(p.held is not None for p in topic.partitions),
        "with gaps": sum(bool(p.gaps) for p in topic.partitions),
    }
    words = (f"{number(count)} {state}" for state, count in counts.items() if count)
    return ", ".join(words) or _progress(topic.lag_records)


def replicators(known: Members, unknown: Fault | None = None) -> str:
    """The link's replicators in one line, with the last hand-over; ``unknown`` is the reason that it is old."""
    now = known.assignment
    said = some(sorted(f"{known.state(m)}: {m.host} since {utc(known.since(m) / 1000)}" for m in known.members), 5)
    said += f"; last hand-over from {now.before}: {now.reason}" if now.before else ""
    if unknown:
        return f"unknown since {utc(unknown.since / 1000)} who copies: {unknown.reason}{said and f'; last seen {said}'}"
    return said or "no replicator is a member of the link's group"


def _progress(lag: int | None) -> str:
    return LinkState.COPIED if lag == 0 else LinkState.COPYING
