"""The events of a link: the states that operators gave, the owners of lanes, stops, gaps and outages.

Some of it is written down in the destination cluster, with its time and its author; so it is known from the first
snapshot on, also of the time before. The rest is seen by comparing two snapshots.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from appliance.link.model.problems import Fault
from appliance.status.model.messages import cluster_name
from appliance.status.model.snapshot import LaneStatus, LinkState, Snapshot

EVENTS_MAX = 500


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """An event at ``at``, in milliseconds; ``by`` is its author, empty if nobody is known."""

    at: int
    subject: str
    what: str
    by: str = ""


def merged(events: Iterable[Event], found: Iterable[Event]) -> list[Event]:
    """The newest events of both, each once, the newest first."""
    return sorted({*events, *found}, reverse=True)[:EVENTS_MAX]


def written_down(snapshot: Snapshot) -> Iterator[Event]:
    """The events that the clusters remember."""
    for record in snapshot.states:
        why = f": {record.why}" if record.why else ""
        yield Event(record.since, record.subject, f"{record.state}{why}", record.by)
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
    known = {topic.name for topic in before.topics}
    if before.topics or not before.source.unknown:
        yield from (Event(after.at, topic.name, "found") for topic in after.topics if topic.name not in known)


def _stop(subject: str, fault: Fault) -> Event:
    return Event(fault.since, subject, f"stopped: {fault.reason}")


def _owners(lanes: Iterable[LaneStatus]) -> Iterator[Event]:
    """The runs that have taken lanes: one event for each run, since it fences all lanes at its start."""
    owned = sorted((lane.owner.run, lane.lane, lane.owner) for lane in lanes if lane.owner)
    for run, group in groupby(owned, key=lambda each: each[0]):
        taken = list(group)
        numbers = ", ".join(str(lane) for _, lane, _ in taken[:8]) + (", ..." if len(taken) > 8 else "")
        lanes_taken = f"lane {numbers}" if len(taken) == 1 else f"lanes {numbers}"
        since = min(owner.since for _, _, owner in taken)
        yield Event(since, lanes_taken, f"taken by run {run}, which fences every run before", taken[0][2].host)
