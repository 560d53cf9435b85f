"""The configuration of topics: DescribeConfigs (KIP-133, KIP-226) and IncrementalAlterConfigs (KIP-339)."""

from collections.abc import Collection, Mapping

from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8

from appliance.errors import ApplianceError
from appliance.kafka.answer import failure
from appliance.kafka.cluster import KafkaCluster

LARGEST_BATCH = "max.message.bytes"

_TOPIC_RESOURCE = i8(2)
_SET_ON_TOPIC = 1
_SET, _DELETE = i8(0), i8(1)
_TOPICS_AT_ONCE = 100
"""Of each topic some forty entries are told: what is read at once must not keep the event loop for long."""


async def largest_batches(
    cluster: KafkaCluster, topics: Collection[str]
) -> tuple[dict[str, int], dict[str, ApplianceError]]:
    """How many bytes a batch may have, by topic: max.message.bytes, set there or by default; and why others don't tell.

    Raises:
        Unreachable: no broker answers.
    """
    described, failures = await _try_describe(cluster, topics, (LARGEST_BATCH,))
    return {name: int(entries[LARGEST_BATCH].value or 0) for name, entries in described.items()}, failures


async def effective(cluster: KafkaCluster, topic: str, key: str) -> str:
    """What a topic's setting is, set there or by default; empty where it is not told.

    Raises:
        BrokerRefused, BrokerBusy, Unreachable: as everywhere.
    """
    described = await _describe(cluster, [topic], (key,))
    entry = described[topic].get(key)
    return (entry.value or "") if entry else ""


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
    described, failures = await _try_describe(cluster, topics, keys)
    for error in failures.values():
        raise error
    return described


async def _try_describe(
    cluster: KafkaCluster, topics: Collection[str], keys: tuple[str, ...] | None
) -> tuple[dict[str, dict[str, DescribeConfigsResourceResult]], dict[str, ApplianceError]]:
    described: dict[str, dict[str, DescribeConfigsResourceResult]] = {}
    failures: dict[str, ApplianceError] = {}
    names = list(topics)
    for first in range(0, len(names), _TOPICS_AT_ONCE):
        connection = await cluster.any_broker()
        request = DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=keys)
                for name in names[first : first + _TOPICS_AT_ONCE]
            )
        )
        answer = await connection.call(request, DescribeConfigsResponse)
        for result in answer.results:
            if result.error_code is ErrorCode.none:
                described[result.resource_name] = {entry.name: entry for entry in result.configs}
            else:
                doing = f"describe the configuration of {result.resource_name}"
                failures[result.resource_name] = failure(result.error_code, doing)
    return described, failures


async def alter_configs(
    cluster: KafkaCluster, changes: Mapping[str, Mapping[str, str | None]]
) -> dict[str, ApplianceError]:
    """Set what is given on each topic, and unset what is None; all else stays.

    Returns:
        Why not, by name, for each topic that could not be changed.

    Raises:
        Unreachable: no broker answers.
    """
    resources = tuple(
        AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE,
            resource_name=name,
            configs=tuple(
                AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
                for key, value in entries.items()
            ),
        )
        for name, entries in changes.items()
    )
    controller = await cluster.controller()
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
    answer = await controller.call(request, IncrementalAlterConfigsResponse)
    return {
        result.resource_name: failure(result.error_code, f"configure {result.resource_name} ({result.error_message})")
        for result in answer.responses
        if result.error_code is not ErrorCode.none
    }
