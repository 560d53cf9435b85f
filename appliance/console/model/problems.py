"""The problems of a link as the page shows them: each with the commands that may resolve it."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from appliance.status.model.messages import cluster_name, problems, utc
from appliance.status.model.snapshot import Fault, PartitionStatus, Snapshot, TopicStatus

_DOCTOR = "bin/appliance doctor destination"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a sentence, and commands to copy."""

    text: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """A stopped or unknown partition, and commands to copy."""

    name: str
    fault: Fault
    commands: tuple[str, ...] = ()


def problems_with_commands(snapshot: Snapshot) -> list[Problem]:
    """The problems; those of topics and partitions come with their commands, an unreachable cluster with the doctor."""
    commands = dict(_commands(snapshot))
    return [Problem(text, commands.get(text.partition(": ")[0], ())) for text in problems(snapshot)]


def _commands(snapshot: Snapshot) -> Iterator[tuple[str, tuple[str, ...]]]:
    for cluster in (snapshot.source, snapshot.destination):
        yield cluster_name(cluster), (_DOCTOR,)
    for topic in snapshot.topics:
        yield topic.name, topic_commands(topic)
        for partition in topic.partitions:
            if partition.stopped:
                yield partition.name, partition_commands(partition)


def topic_commands(topic: TopicStatus) -> tuple[str, ...]:
    """The commands for a topic that is not copied."""
    return (f"bin/appliance status --topic {shlex.quote(topic.name)}",) if topic.stopped else ()


def partition_commands(partition: PartitionStatus) -> tuple[str, ...]:
    """The commands for a stopped partition: to see what a retry would do, and to retry where it stopped."""
    if not partition.stopped:
        return ()
    resume = f"bin/appliance resume --topic {shlex.quote(partition.topic)} --partition {partition.partition}"
    return f"{resume} --dry-run", resume


def stops(topic: TopicStatus) -> list[Stop]:
    """The stopped and unknown partitions of a topic."""
    found = []
    for partition in topic.partitions:
        if partition.stopped:
            found.append(Stop(partition.name, partition.stopped, partition_commands(partition)))
        elif partition.unknown:
            found.append(Stop(partition.name, partition.unknown))
    return found


def held(topic: TopicStatus) -> list[str]:
    """A sentence for each partition that a transaction at the source holds."""
    return [
        f"{p.name}: {p.held.waiting} offsets wait for a transaction that is open since {utc(p.held.transaction.began)}"
        for p in topic.partitions
        if p.held
    ]
