"""The part of a snapshot that only the running replicator knows: its problems, and since when it is behind. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyState
from appliance.link.model.problems import Fault, Problems
from appliance.status.model.snapshot import Snapshot
from appliance.status.model.topic_status import PartitionStatus, Reached, TopicStatus
from appliance.timestamps import milliseconds

_STANDS_BY = "this VM's replicator stands by, and knows its own alone: see the VM whose replicator copies"


@dataclass(frozen=True, slots=True)
class Running:
    """The running replicator's knowledge; ``unknown`` is the reason that there is none.

    ``behind`` has the times in milliseconds since which partitions are behind.
    """

    problems: Problems = field(default_factory=dict)
    behind: Mapping[Partition, int] = field(default_factory=dict)
    unknown: str = ""
    stands_by: bool = False


def read_running(document: Mapping[str, Any]) -> Running:
    """The knowledge in a replicator's page ``/status``; ValueError, KeyError or TypeError if it is no such page."""
    problems = {
        str(each["subject"]): Fault(str(each["reason"]), milliseconds(each["since"])) for each in document["problems"]
    }
    behind = {
        Partition(str(topic["topic"]), int(each["partition"])): milliseconds(each["behind_since"])
        for topic in document["topics"]
        for each in topic["partitions"]
        if each["behind_since"]
    }
    return Running(problems, behind, stands_by=bool(document.get("stands_by")))


def with_running(snapshot: Snapshot, running: Running) -> Snapshot:
    """The snapshot with that; a topic that cannot be copied as things are is a stopped one."""
    topics = tuple(_topic(topic, running, snapshot.at) for topic in snapshot.topics)
    unknown, stands_by = running.unknown, running.stands_by
    known = replace(snapshot, topics=topics, problems=running.problems, stands_by=stands_by)
    return replace(known, problems_unknown=_STANDS_BY if stands_by else unknown)


def _topic(topic: TopicStatus, running: Running, at: int) -> TopicStatus:
    stopped, begun = topic.stopped, any(each.next_offset is not None for each in topic.partitions)
    if topic.active and topic.state is CopyState.ACTIVE and not begun:
        stopped = stopped or running.problems.get(f"topic {topic.name}")
    partitions = tuple(
        _partition(each, running.behind.get(Partition(each.topic, each.partition)), at) for each in topic.partitions
    )
    return replace(topic, stopped=stopped, partitions=partitions)


def _partition(partition: PartitionStatus, since: int | None, at: int) -> PartitionStatus:
    if since is None or not partition.reached or not partition.lag_records:
        return partition
    first, *later = partition.reached
    reached = Reached(first.end, min(first.at, since))
    return replace(partition, reached=(reached, *later), lag_seconds=max(0, at - reached.at) / 1000)
