"""The plan of a link: the partitions to copy, and their lanes. Pure: metadata in, plan out."""

import uuid
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kio.schema.errors import ErrorCode

from appliance.grouping import grouped
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.link.model.copy_states import CopyState, States, effective
from appliance.link.model.layout import Layout
from appliance.link.model.naming import Naming
from appliance.settings.topics import TOPIC_NAME_MAX


@dataclass(frozen=True, slots=True, order=True)
class Replica:
    """One source partition and where its copy goes: the partition of the same number in the copy's topic.

    Topics are identified by id (invariant G); the protocol needs the names. ``cluster`` is the source of a replica of a
    total order, which has several; otherwise it is empty.
    """

    source_topic: str
    partition: int
    destination_topic: str
    source_id: uuid.UUID
    destination_id: uuid.UUID
    cluster: str = ""

    @property
    def source(self) -> Partition:
        """The source partition; of a total order with its cluster, as ``Origin.of`` names it."""
        return Partition(f"{self.cluster}:{self.source_topic}" if self.cluster else self.source_topic, self.partition)

    @property
    def log(self) -> Partition:
        """The source partition, by its name in its own cluster."""
        return Partition(self.source_topic, self.partition)

    @property
    def copy(self) -> Partition:
        """The destination partition."""
        return Partition(self.destination_topic, self.partition)

    @property
    def name(self) -> str:
        """The source partition, for people."""
        return str(self.source)


@dataclass(frozen=True, slots=True)
class DiscoveredTopics:
    """The outcome of one look at both clusters.

    ``missing`` are source topics whose copy has to be made first, ``smaller`` those whose copy has fewer partitions,
    ``unfit`` source topics that cannot be copied now, with the reason in one line; none of these are copied.
    ``excluded`` are source topics that are not copied though their names match, with the reason in a few words.
    ``left_out`` are the settings that a source topic's copy lacks, as far as they are known. ``inactive`` are topics
    that an operator has excluded from copying, each with its state.
    """

    replicas: tuple[Replica, ...] = ()
    missing: tuple[Topic, ...] = ()
    smaller: tuple[tuple[Topic, Topic], ...] = ()
    unfit: Mapping[str, str] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inactive: Mapping[str, CopyState] = field(default_factory=dict)


def discover(source: Metadata, destination: Metadata, naming: Naming) -> DiscoveredTopics:
    """Match the source's topics with their copies."""
    replicas: list[Replica] = []
    missing: list[Topic] = []
    smaller: list[tuple[Topic, Topic]] = []
    unfit: dict[str, str] = {}
    excluded: dict[str, str] = {}
    for topic in sorted(source.topics.values(), key=lambda topic: topic.name):
        if not naming.copies(topic.name, topic.internal, source.topics):
            if naming.takes_for_a_replicators(topic.name, source.topics):
                unfit[topic.name] = f"topic {topic.name} is named like a replicator's own: rename or exclude it"
            elif reason := naming.left_out(topic.name, topic.internal, source.topics):
                excluded[topic.name] = reason
            continue
        copy = destination.topics.get(naming.destination(topic.name))
        other = naming.meets_dead_letters_of(topic.name, source.topics)
        fault = _dead_letters_fault(naming.destination(topic.name), other) if other else _fault(topic, copy, naming)
        if fault:
            unfit[topic.name] = fault
        elif copy is None:
            missing.append(topic)
        elif len(copy.leaders) < len(topic.leaders):
            smaller.append((topic, copy))
        else:
            replicas += (Replica(topic.name, n, copy.name, topic.id, copy.id) for n in range(len(topic.leaders)))
    return DiscoveredTopics(tuple(replicas), tuple(missing), tuple(smaller), unfit, excluded)


def without(topics: DiscoveredTopics, unfit: Mapping[str, str]) -> DiscoveredTopics:
    """The same without source topics that are unfit for these reasons."""
    return replace(_without(topics, unfit), unfit={**topics.unfit, **unfit})


def _without(discovered: DiscoveredTopics, topics: Container[str]) -> DiscoveredTopics:
    return replace(
        discovered,
        replicas=tuple(replica for replica in discovered.replicas if replica.source_topic not in topics),
        missing=tuple(topic for topic in discovered.missing if topic.name not in topics),
        smaller=tuple((topic, copy) for topic, copy in discovered.smaller if topic.name not in topics),
    )


def obeying(topics: DiscoveredTopics, states: States) -> DiscoveredTopics:
    """The same without the topics whose copies must not be made, grown or written now."""
    replicas, missing, smaller = topics.replicas, topics.missing, topics.smaller
    names = {*(r.source_topic for r in replicas), *(t.name for t in missing), *(t.name for t, _ in smaller)}
    inactive = {name: state for name in names if (state := effective(states, name)) is not CopyState.ACTIVE}
    return replace(_without(topics, inactive), inactive=inactive)


def waiting(topics: DiscoveredTopics, copied: Iterable[Replica], reason: str) -> DiscoveredTopics:
    """The same while no copy may be made or grown, with the reason: a growing topic's copied partitions continue."""
    ids = {topic.name: (topic.id, copy.id) for topic, copy in topics.smaller}
    growing = [each for each in copied if ids.get(each.source_topic) == (each.source_id, each.destination_id)]
    unfit = {topic.name: reason for topic in (*topics.missing, *(topic for topic, _ in topics.smaller))}
    replicas = tuple(sorted((*topics.replicas, *growing)))
    return replace(topics, replicas=replicas, missing=(), smaller=(), unfit={**topics.unfit, **unfit})


def _fault(topic: Topic, copy: Topic | None, naming: Naming) -> str | None:
    name = naming.destination(topic.name)
    if topic.error is ErrorCode.topic_authorization_failed:
        return f"SOURCE_API_KEY may not read topic {topic.name}: grant it Describe and Read there"
    if not topic.leaders:
        return None if topic.error is ErrorCode.none else f"topic {topic.name} is not ready: {topic.error.name.upper()}"
    if naming.is_a_replicators(name):
        return f"{name} is a topic in which a replicator keeps its state, and no copy: change {naming.policy.variable}"
    if copy is None:
        too_long = f"{name} is longer than a topic's name may be: shorten {naming.policy.variable}"
        return too_long if len(name) > TOPIC_NAME_MAX else None
    if copy.error is ErrorCode.topic_authorization_failed:
        return f"DESTINATION_API_KEY may not write topic {name}: grant it Describe and Write there"
    return None


def _dead_letters_fault(copy: str, other: str) -> str:
    return (
        f"{copy} is the topic of the dead letters of {other}, and cannot be a copy too: exclude one of the two, or set "
        "ON_TRANSFORM_ERROR=stop"
    )


def too_small(topic: Topic, copy: Topic) -> str:
    """The reason that a topic is not copied to an older topic with fewer partitions."""
    return (
        f"destination topic {copy.name} has {len(copy.leaders)} partitions and {topic.name} has {len(topic.leaders)}: "
        f"give {copy.name} {len(topic.leaders)} partitions, or delete it and it will be made anew"
    )


def lanes_of(replicas: Iterable[Replica], layout: Layout) -> dict[int, tuple[Replica, ...]]:
    """The replicas of each lane with any, by lane."""
    dealt = grouped((layout.lane_of(*replica.source), replica) for replica in sorted(replicas))
    return {lane: tuple(dealt[lane]) for lane in sorted(dealt)}


def lanes_by_task(
    lanes: Mapping[int, tuple[Replica, ...]], tasks: int, task_of: Sequence[int]
) -> tuple[Mapping[int, tuple[Replica, ...]], ...]:
    """The lanes of each task, given the task of each lane; some tasks may have none.

    A lane's task depends only on the lane's number, so that it stays there while topics come and go.
    """
    return tuple({lane: lanes[lane] for lane in lanes if task_of[lane] == task} for task in range(tasks))
