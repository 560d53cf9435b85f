"""The problems of a link as the page shows them: each with the commands that may resolve it."""

from dataclasses import dataclass

from appliance.link.model.problems import Fault
from appliance.program import DOCTOR
from appliance.status.model.messages import Subject, held_by, problems_by_subject, remedies
from appliance.status.model.snapshot import ClusterStatus, Snapshot, TopicStatus

Commands = tuple[tuple[str, str], ...]
"""Commands to copy, each behind its effect."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a sentence, and commands to copy."""

    text: str
    commands: Commands = ()


@dataclass(frozen=True, slots=True)
class StoppedPartition:
    """A stopped or unknown partition, and commands to copy."""

    name: str
    fault: Fault
    commands: Commands = ()


def problems_with_commands(snapshot: Snapshot) -> list[Problem]:
    """The problems; those of topics and partitions come with their commands, an unreachable cluster with the doctor."""
    return [Problem(text, commands(subject)) for subject, text in problems_by_subject(snapshot)]


def commands(subject: Subject) -> Commands:
    """The commands that may resolve a problem."""
    if isinstance(subject, ClusterStatus):
        return (("test the path step by step", DOCTOR),)
    return tuple((each.effect, each.command) for each in remedies(subject))


def stops(topic: TopicStatus) -> list[StoppedPartition]:
    """The stopped and unknown partitions of a topic."""
    return [
        StoppedPartition(partition.name, fault, commands(partition))
        for partition in topic.partitions
        if (fault := partition.stopped or partition.unknown)
    ]


def held(topic: TopicStatus) -> list[str]:
    """A sentence for each partition that a transaction at the source holds."""
    return [f"{partition.name}: {held_by(partition.held)}" for partition in topic.partitions if partition.held]
