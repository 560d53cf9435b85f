"""The problems of a link as the page shows them: each with the commands that may resolve it."""

import shlex
from dataclasses import dataclass

from appliance.link.model.problems import Fault
from appliance.status.model.messages import Subject, held_by, problems_by_subject
from appliance.status.model.snapshot import ClusterStatus, PartitionStatus, Snapshot, TopicStatus

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
    return [Problem(text, _commands(subject)) for subject, text in problems_by_subject(snapshot)]


def _commands(subject: Subject) -> tuple[str, ...]:
    match subject:
        case ClusterStatus():
            return (_DOCTOR,)
        case TopicStatus():
            return topic_commands(subject)
        case PartitionStatus():
            return partition_commands(subject)
        case _:
            return ()


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
    return [f"{partition.name}: {held_by(partition.held)}" for partition in topic.partitions if partition.held]
