"""Topics made, grown and deleted: CreateTopics (KIP-4, KIP-525), CreatePartitions (KIP-195), DeleteTopics (KIP-516)."""

import asyncio
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kio.schema.create_partitions.v3 import CreatePartitionsRequest, CreatePartitionsResponse
from kio.schema.create_partitions.v3.request import CreatePartitionsTopic
from kio.schema.create_topics.v7 import CreateTopicsRequest, CreateTopicsResponse
from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig
from kio.schema.delete_topics.v6 import DeleteTopicsRequest, DeleteTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicState
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from appliance.clock import loop_seconds
from appliance.errors import ApplianceError, BrokerBusy
from appliance.grouping import pieces
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.transactions import milliseconds
from appliance.kafka.protocol.answer import failure
from appliance.kafka.protocol.metadata import NOBODY, NOWHERE, Metadata
from appliance.settings.role import prefix_of

_TIMEOUT = 30.0
_GONE = frozenset({ErrorCode.none, ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id})
_GONE_PAUSE = 0.05
_RECORDS_AT_ONCE = 5_000
"""Half of a controller's limit of metadata records for one request; it refuses larger requests."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to make; replication factor -1 is the broker's default (KIP-464).

    ``required`` are those of its ``configs`` without which it must not be made.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    required: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CreationOutcome:
    """The outcome of making topics: ``made``, ``there`` already, or the error, by name.

    ``made`` has the replication factor of each, -1 if the cluster does not return it (KIP-525).
    """

    made: dict[str, int] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)
    failures: dict[str, ApplianceError] = field(default_factory=dict)


async def create_topics(cluster: Cluster, topics: Collection[NewTopic], validate_only: bool = False) -> CreationOutcome:
    """Make the topics. An existing one is not a failure, since two processes may race to make it.

    With ``validate_only`` the cluster only checks the request.
    """
    controller = await cluster.controller()
    created = CreationOutcome()
    for piece in pieces(((topic, 1 + topic.partitions + len(topic.configs)) for topic in topics), _RECORDS_AT_ONCE):
        request = CreateTopicsRequest(
            topics=tuple(map(_creatable, piece)), timeout=milliseconds(_TIMEOUT), validate_only=validate_only
        )
        _sort(await controller.call(request, CreateTopicsResponse, 2 * _TIMEOUT), created)
    return created


def _sort(answer: CreateTopicsResponse, created: CreationOutcome) -> None:
    for topic in answer.topics:
        name = str(topic.name)
        if topic.error_code is ErrorCode.none:
            created.made[name] = int(topic.replication_factor)
        elif topic.error_code is ErrorCode.topic_already_exists:
            created.there.add(name)
        else:
            words = topic.error_message or "no reason given"
            created.failures[name] = failure(topic.error_code, f"create topic {name}", words)


async def grow_topics(cluster: Cluster, partitions: Mapping[str, int]) -> dict[str, ApplianceError]:
    """Give each topic this many partitions (CreatePartitions, KIP-195).

    Returns:
        The errors of topics that could not be grown, by name.
    """
    controller = await cluster.controller()
    failures: dict[str, ApplianceError] = {}
    for piece in pieces(((entry, entry[1]) for entry in partitions.items()), _RECORDS_AT_ONCE):
        topics = tuple(
            CreatePartitionsTopic(name=TopicName(name), count=i32(count), assignments=None) for name, count in piece
        )
        request = CreatePartitionsRequest(topics=topics, timeout=milliseconds(_TIMEOUT), validate_only=False)
        answer = await controller.call(request, CreatePartitionsResponse, 2 * _TIMEOUT)
        failures |= {
            str(result.name): failure(result.error_code, f"add partitions to {result.name}", str(result.error_message))
            for result in answer.results
            if result.error_code is not ErrorCode.none
        }
    return failures


async def require_led(cluster: Cluster, partitions: Mapping[str, int]) -> Metadata:
    """The metadata of topics that have so many partitions or more, each with a leader that knows of it.

    Metadata names a leader before that broker has made the partition. A transaction that ends in between may occupy its
    transactional id for half a minute: brokers lose the answer to a WriteTxnMarkers with such a partition among others.
    """
    metadata = await cluster.metadata(list(partitions))
    for name, least in partitions.items():
        topic = metadata.topics.get(name)
        if topic is None or len(topic.leaders) < max(least, 1) or NOBODY in topic.leaders:
            raise BrokerBusy(f"{name} has not all its leaders yet", "LEADER_NOT_AVAILABLE")
    every = [partition for name in partitions for partition in metadata.topics[name].partitions]
    await list_offsets(cluster, metadata, every, Bound.END)
    return metadata


async def delete_topics(cluster: Cluster, topics: Mapping[str, uuid.UUID]) -> None:
    """Delete the topics with these ids, and wait until they are no longer shown; a missing one is not a failure.

    Raises:
        ApplianceError: one was not deleted, with the necessary right.
        BrokerBusy: one is still shown after half a minute.
    """
    if not topics:
        return
    controller = await cluster.controller()
    names = {topic_id: name for name, topic_id in topics.items()}
    states = tuple(map(_deletable, topics.items()))
    request = DeleteTopicsRequest(topics=states, timeout=milliseconds(_TIMEOUT))
    answer = await controller.call(request, DeleteTopicsResponse, 2 * _TIMEOUT)
    for result in answer.responses:
        if result.error_code not in _GONE:
            name = str(result.name or names.get(result.topic_id or NOWHERE, ""))
            denied = result.error_code is ErrorCode.topic_authorization_failed
            words = f"grant {prefix_of(cluster.side)}_API_KEY Delete on it" if denied else ""
            raise failure(result.error_code, f"delete topic {name}", words or str(result.error_message or ""))
    await _until_gone(cluster, topics)


def _deletable(topic: tuple[str, uuid.UUID]) -> DeleteTopicState:
    """The topic by its id (invariant G), or by its name in a cluster without ids."""
    name, topic_id = topic
    return (
        DeleteTopicState(name=TopicName(name), topic_id=None)
        if topic_id == NOWHERE
        else DeleteTopicState(name=None, topic_id=topic_id)
    )


async def _until_gone(cluster: Cluster, topics: Mapping[str, uuid.UUID]) -> None:
    deadline = loop_seconds() + _TIMEOUT
    while True:
        present = (await cluster.metadata(list(topics))).topics
        existing = sorted(name for name, topic_id in topics.items() if name in present and present[name].id == topic_id)
        if not existing:
            return
        if loop_seconds() > deadline:
            raise BrokerBusy(f"{', '.join(existing)}: deleted, and still shown", "REQUEST_TIMED_OUT")
        await asyncio.sleep(_GONE_PAUSE)


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=TopicName(topic.name),
        num_partitions=i32(topic.partitions),
        replication_factor=i16(topic.replication_factor),
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()),
    )


async def hidden_topics(cluster: Cluster, names: Collection[str]) -> set[str]:
    """The topics, existing or not, that the API key may not Describe."""
    topics = (await cluster.metadata(list(names))).topics if names else {}
    return {name for name, topic in topics.items() if topic.error is ErrorCode.topic_authorization_failed}
