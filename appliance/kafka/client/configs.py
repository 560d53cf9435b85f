"""The settings of topics: DescribeConfigs (KIP-133, KIP-226) and IncrementalAlterConfigs (KIP-339)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8

from appliance.errors import ApplianceError, PeerError, raise_first
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.answer import Answers, failure
from appliance.kafka.protocol.versions import offers

LARGEST_BATCH = "max.message.bytes"
LEAST_IN_SYNC = "min.insync.replicas"
POLICY = "cleanup.policy"
TIMES = "message.timestamp.type"

_TOPIC_RESOURCE = i8(2)
_SET_ON_TOPIC = 1
_SET, _DELETE = i8(0), i8(1)
_TOPICS_AT_ONCE = 100
"""Most topics described at once: each has some forty entries, and the event loop must not be blocked for long."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a topic; ``own`` when it is set on the topic itself, and is not the broker's default."""

    value: str | None
    own: bool
    read_only: bool


Settings = Mapping[str, Setting]
"""All settings of a topic that its broker knows, by name."""


@dataclass(frozen=True, slots=True)
class WriteLimits:
    """Limits of a topic: the largest batch in bytes, the least number of replicas in sync, its records' own times.

    Compaction deletes from a topic that ``is_compacted``.
    """

    batch_bytes: int
    in_sync: int
    keeps_times: bool = True
    is_compacted: bool = False


async def write_limits(cluster: Cluster, topics: Collection[str]) -> Answers[str, WriteLimits]:
    """Read the limits of each topic, its own or by default; with the errors of the others."""
    described, failures = await try_describe(cluster, topics, (LARGEST_BATCH, LEAST_IN_SYNC, TIMES, POLICY))
    limits = {}
    for name, settings in described.items():
        least, times, policy = settings.get(LEAST_IN_SYNC), settings.get(TIMES), settings.get(POLICY)
        keeps_times = times is None or times.value != "LogAppendTime"
        try:
            in_sync = int((least and least.value) or 1)
            is_compacted = policy is not None and "compact" in (policy.value or "")
            limits[name] = WriteLimits(int(settings[LARGEST_BATCH].value or 0), in_sync, keeps_times, is_compacted)
        except (KeyError, ValueError) as error:
            raise PeerError(f"the limits of {name} are no numbers: {error}") from error
    return Answers(limits, failures)


async def configs(cluster: Cluster, topics: Collection[str]) -> dict[str, dict[str, str]]:
    """The settings of each topic itself, by topic and key; the broker's defaults are left out."""
    described, failures = await try_describe(cluster, topics)
    raise_first(failures.values())
    return {name: set_on(settings) for name, settings in described.items()}


def set_on(settings: Settings) -> dict[str, str]:
    """The settings that are set on the topic itself."""
    return {key: entry.value for key, entry in settings.items() if entry.own and entry.value is not None}


async def cleanup_policy(cluster: Cluster, topic: str) -> str:
    """The effective ``cleanup.policy`` of a topic; empty if there is none, or it is unknown."""
    described, _ = await try_describe(cluster, [topic], (POLICY,))
    setting = described.get(topic, {}).get(POLICY)
    return (setting and setting.value) or ""


async def try_describe(
    cluster: Cluster, topics: Collection[str], keys: tuple[str, ...] | None = None
) -> Answers[str, dict[str, Setting]]:
    """The settings of each topic (of these names, or all), and the errors of the others.

    Brokers that describe no topic give none.
    """
    answers, names = Answers[str, dict[str, Setting]]({}, {}), list(topics)
    for first in range(0, len(names), _TOPICS_AT_ONCE):
        connection = await cluster.any_broker()
        if not offers(connection.offered, DescribeConfigsRequest):
            return Answers({name: {} for name in names}, {})
        request = DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=keys)
                for name in names[first : first + _TOPICS_AT_ONCE]
            )
        )
        answer = await connection.call(request, DescribeConfigsResponse)
        for result in answer.results:
            name, doing = result.resource_name, f"describe the configuration of {result.resource_name}"
            settings = {
                entry.name: Setting(entry.value, entry.config_source == _SET_ON_TOPIC, entry.read_only)
                for entry in result.configs
            }
            answers.take(name, settings, result.error_code, doing)
    return answers


async def alter_configs(
    cluster: Cluster, changes: Mapping[str, Mapping[str, str | None]], validate_only: bool = False
) -> dict[str, ApplianceError]:
    """Set the given settings of each topic, and unset those that are None; all others stay.

    With ``validate_only`` the cluster only checks the change.

    Returns:
        The errors of topics that could not be changed, by name.
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
    if not offers(controller.offered, IncrementalAlterConfigsRequest):
        words = "its brokers lack IncrementalAlterConfigs"
        return {name: failure(ErrorCode.unsupported_version, f"configure {name}", words) for name in changes}
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    answer = await controller.call(request, IncrementalAlterConfigsResponse)
    return {
        result.resource_name: failure(
            result.error_code, f"configure {result.resource_name}", result.error_message or "no reason given"
        )
        for result in answer.responses
        if result.error_code is not ErrorCode.none
    }
