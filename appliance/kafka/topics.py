"""Topics made and described: CreateTopics (KIP-4, KIP-525) and DescribeConfigs (KIP-133, KIP-226)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kio.schema.create_topics.v7 import CreateTopicsRequest, CreateTopicsResponse
from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32

from appliance.errors import ApplianceError
from appliance.kafka.answer import check, failure
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.transactions import milliseconds

_TOPIC_RESOURCE = i8(2)
_SET_ON_TOPIC = 1
_LARGEST = "max.message.bytes"
_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be made; replication factor -1 is the broker's default (KIP-464)."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


async def create_topics(cluster: KafkaCluster, topics: Collection[NewTopic]) -> dict[str, ApplianceError]:
    """Make the topics. One that is there already counts as made, since two may ask for it at once.

    Returns:
        Why not, by name, for each one that could not be made.

    Raises:
        Unreachable: no broker answers.
    """
    controller = await cluster.controller()
    request = CreateTopicsRequest(topics=tuple(map(_creatable, topics)), timeout=milliseconds(_TIMEOUT))
    answer = await controller.call(request, CreateTopicsResponse, 2 * _TIMEOUT)
    failures = {}
    for topic in answer.topics:
        if topic.error_code not in (ErrorCode.none, ErrorCode.topic_already_exists):
            failures[str(topic.name)] = failure(
                topic.error_code, f"create topic {topic.name} ({topic.error_message or 'no reason given'})"
            )
    return failures


async def largest_batches(cluster: KafkaCluster, topics: Collection[str]) -> dict[str, int]:
    """How many bytes a batch may have, by topic: max.message.bytes, set there or by default.

    Raises:
        BrokerRefused, BrokerBusy, Unreachable: as everywhere.
    """
    described = await _describe(cluster, topics, (_LARGEST,))
    return {name: int(entries[_LARGEST].value or 0) for name, entries in described.items()}


async def configs(cluster: KafkaCluster, topics: Collection[str]) -> dict[str, dict[str, str]]:
    """What was set on each topic itself, by topic and key; the broker's defaults are left out.

    Raises:
        BrokerRefused, BrokerBusy, Unreachable: as everywhere.
    """
    described = await _describe(cluster, topics, None)
    return {
        name: {
            key: entry.value
            for key, entry in entries.items()
            if entry.config_source == _SET_ON_TOPIC and entry.value is not None
        }
        for name, entries in described.items()
    }


async def _describe(
    cluster: KafkaCluster, topics: Collection[str], keys: tuple[str, ...] | None
) -> dict[str, dict[str, DescribeConfigsResourceResult]]:
    connection = await cluster.any_broker()
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=keys)
            for name in topics
        )
    )
    answer = await connection.call(request, DescribeConfigsResponse)
    for result in answer.results:
        check(result.error_code, f"describe the configuration of {result.resource_name}")
    return {result.resource_name: {entry.name: entry for entry in result.configs} for result in answer.results}


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=TopicName(topic.name),
        num_partitions=i32(topic.partitions),
        replication_factor=i16(topic.replication_factor),
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()),
    )
