"""The events of a link: the states that operators gave, the owners of lanes, stops, gaps and outages.

Some of it is written down in the destination cluster, with its time and its author; so it is known from the first
snapshot on, also of the time before. The rest is seen by comparing two snapshots.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from appliance.link.model.checkpoint import OPERATOR
from appliance.link.model.copy_states import CopyState
from appliance.link.model.problems import Fault
from appliance.status.model.messages import cluster_name
from appliance.status.model.snapshot import LaneStatus, LinkState, Snapshot

EVENTS_MAX = 500
STOP, RESTART, HAND_OVER, PROMOTION = "stop", "restart", "hand-over", "promotion"
"""The marks of charts."""


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """An event at ``at``, in milliseconds; ``by`` is its author, empty if nobody is known. Charts show ``mark``."""

    at: int
    subject: str
    what: str
    by: str = ""
    mark: str = field(default="", compare=False)


def merged(events: Iterable[Event], more: Iterable[Event]) -> list[Event]:
    """The newest events of both, each once, the newest first."""
    return sorted({*events, *more}, reverse=True)[:EVENTS_MAX]


def written_down(snapshot: Snapshot) -> Iterator[Event]:
    """The events that the clusters remember."""
    for record in snapshot.states:
        why = f": {record.why}" if record.why else ""
        mark = PROMOTION if record.state is CopyState.PROMOTED else ""
        yield Event(record.since, record.subject, f"{record.state}{why}", record.by, mark)
    yield from _owners(snapshot.lanes)
    for topic in snapshot.topics:
        if topic.stopped:
            yield _stop(topic.name, topic.stopped)
        for partition in topic.partitions:
            if partition.stopped:
                yield _stop(partition.name, partition.stopped)
            for gap in partition.gaps or ():
                yield Event(gap.found, partition.name, f"gap from offset {gap.first} on: {gap.cause}")


def changes(before: Snapshot | None, after: Snapshot) -> Iterator[Event]:
    """The events between two snapshots that no cluster remembers."""
    if before is None:
        return
    for old, new in ((before.source, after.source), (before.destination, after.destination)):
        if new.unknown and not old.unknown:
            yield Event(new.unknown.since, cluster_name(new), f"no answer: {new.unknown.reason}")
        if old.unknown and not new.unknown:
            yield Event(after.at, cluster_name(new), "answers again")
    if after.stopped and not before.stopped:
        yield _stop(after.replicator, after.stopped)
    if {before.state, after.state} == {LinkState.STOPPED, LinkState.COPYING}:
        yield Event(after.at, after.replicator, str(after.state))
    was = {partition.name for partition in before.partitions if partition.stopped}
    for partition in after.partitions:
        if partition.name in was and not partition.stopped and not partition.unknown:
            yield Event(after.at, partition.name, "no longer stopped")
    names = {topic.name for topic in before.topics}
    if before.topics or not before.source.unknown:
        yield from (Event(after.at, topic.name, "found") for topic in after.topics if topic.name not in names)


def _stop(subject: str, fault: Fault) -> Event:
    return Event(fault.since, subject, f"stopped: {fault.reason}", mark=STOP)


def _owners(lanes: Iterable[LaneStatus]) -> Iterator[Event]:
    """The runs that have taken lanes: one event for each run, since it fences all lanes at its start."""
    taken = [(lane.lane, lane.owner) for lane in lanes if lane.owner and lane.owner.run != OPERATOR]
    owned = sorted((owner.run, lane, owner) for lane, owner in taken)
    for run, group in groupby(owned, key=lambda each: each[0]):
        lanes_of_run = list(group)
        numbers = ", ".join(str(lane) for _, lane, _ in lanes_of_run[:8]) + (", ..." if len(lanes_of_run) > 8 else "")
        subject = f"lane {numbers}" if len(lanes_of_run) == 1 else f"lanes {numbers}"
        since = min(owner.since for _, _, owner in lanes_of_run)
        what = f"taken by run {run}, which fences every run before"
        yield Event(since, subject, what, lanes_of_run[0][2].host, RESTART)
