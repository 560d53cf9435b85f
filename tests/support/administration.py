"""An operator's changes to topics, with an independent client."""

import contextlib
import time
import weakref
from collections.abc import Collection, Iterator

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from testbed.cluster import Cluster
from testbed.plan import ApiKey
from tests.support.patience import PATIENCE

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "200",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "600000",
}
"""Settings of a topic that is compacted within a second."""


_clients: weakref.WeakKeyDictionary[Cluster, tuple[str, AdminClient]] = weakref.WeakKeyDictionary()
"""One client for each cluster, because a login costs more than a question; with its addresses of that time."""


def administrator(cluster: Cluster) -> AdminClient:
    """The cluster's client for all tests of this process."""
    at = cluster.home_bootstrap
    known = _clients.get(cluster)
    if known is None or known[0] != at:
        patient = {"reconnect.backoff.max.ms": 100, "log_level": 0}
        known = _clients[cluster] = (at, AdminClient({**cluster.client_configuration(), **patient}))
    return known[1]


def forget_administrator(cluster: Cluster) -> None:
    """Take a new client next time: this one would always send the epoch of a former leader."""
    _clients.pop(cluster, None)


def make_topic(cluster: Cluster, new: NewTopic) -> None:
    """Create a topic, and wait until the metadata name the leader of each partition."""
    admin = administrator(cluster)
    admin.create_topics([new])[new.topic].result(PATIENCE)
    _until_led(admin, new.topic, new.num_partitions)


def grow(cluster: Cluster, topic: str, count: int) -> None:
    """Grow a topic to this number of partitions, and wait until the metadata name the leader of each."""
    admin = administrator(cluster)
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(PATIENCE)
    _until_led(admin, topic, count)


def _until_led(admin: AdminClient, topic: str, count: int) -> None:
    """Wait for leaders: the controller answers when it has decided, and the brokers learn it a moment later."""
    deadline = time.monotonic() + PATIENCE
    while _led(admin, topic) < count:
        assert time.monotonic() < deadline, f"{topic} has not {count} partitions with a leader"
        time.sleep(0.02)


def _led(admin: AdminClient, topic: str) -> int:
    """The number of a topic's partitions that have a leader."""
    known = admin.list_topics(topic, timeout=PATIENCE).topics[topic]
    return sum(partition.leader >= 0 for partition in known.partitions.values())


def topics(cluster: Cluster) -> set[str]:
    """The names of the cluster's topics."""
    return set(administrator(cluster).list_topics(timeout=PATIENCE).topics)


def delete_topics(cluster: Cluster, names: Collection[str]) -> None:
    """Delete topics that are there; brokers may name them for a moment longer, also those that are gone already."""
    for deletion in administrator(cluster).delete_topics(sorted(names)).values() if names else ():
        try:
            deletion.result(PATIENCE)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


def delete_topic(cluster: Cluster, topic: str) -> None:
    """Delete a topic, and wait until it is gone."""
    delete_topics(cluster, [topic])
    while administrator(cluster).list_topics(topic, timeout=PATIENCE).topics[topic].error is None:
        time.sleep(0.05)


def clear(cluster: Cluster) -> None:
    """Delete all topics except Kafka's own, and wait until they are gone."""
    deadline = time.monotonic() + PATIENCE
    delete_topics(cluster, own_topics(cluster))
    while remaining := own_topics(cluster):
        assert time.monotonic() < deadline, f"{remaining} are not deleted"
        time.sleep(0.05)


def own_topics(cluster: Cluster) -> set[str]:
    """The names of the cluster's topics, without Kafka's own."""
    return {name for name in topics(cluster) if not name.startswith("__")}


def wait_for_leader(cluster: Cluster, topic: str, node: int) -> None:
    """Wait until the node leads a topic's partition 0."""
    admin = administrator(cluster)
    deadline = time.monotonic() + PATIENCE
    while admin.list_topics(topic, PATIENCE).topics[topic].partitions[0].leader != node:
        assert time.monotonic() < deadline, f"node {node} does not lead {topic}"
        time.sleep(0.1)


def wait_until_in_sync(cluster: Cluster) -> None:
    """Wait until every replica of every partition is in sync with its leader."""
    admin = administrator(cluster)
    deadline = time.monotonic() + PATIENCE
    while behind := _out_of_sync(admin):
        assert time.monotonic() < deadline, f"{behind} are not in sync"
        time.sleep(0.1)


def _out_of_sync(admin: AdminClient) -> list[str]:
    partitions = [
        (name, partition)
        for name, topic in admin.list_topics(timeout=PATIENCE).topics.items()
        for partition in topic.partitions.values()
    ]
    return [f"{name}-{found.id}" for name, found in partitions if set(found.isrs) != set(found.replicas)]


def configure(cluster: Cluster, topic: str, **configs: str | None) -> None:
    """Change a topic's configuration; None removes a setting."""
    entries = [
        ConfigEntry(
            key, value, incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        )
        for key, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = administrator(cluster)
    for change in admin.incremental_alter_configs([resource]).values():
        change.result(PATIENCE)


def configuration(cluster: Cluster, topic: str) -> dict[str, str]:
    """The settings of the topic itself, of which a broker may not know yet."""
    admin, deadline = administrator(cluster), time.monotonic() + PATIENCE
    while True:
        (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        try:
            entries = described.result(PATIENCE).values()
            break
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    return {entry.name: entry.value for entry in entries if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}


def delete_before(cluster: Cluster, topic: str, partition: int, offset: int) -> None:
    """Delete a partition's records before an offset, as retention does.

    A leader learns a moment later than the controller that the topic's new policy allows it.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        (deletion,) = administrator(cluster).delete_records([TopicPartition(topic, partition, offset)]).values()
        try:
            deletion.result(PATIENCE)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.POLICY_VIOLATION or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def partitions(cluster: Cluster, topic: str) -> int:
    """The number of a topic's partitions."""
    listed = administrator(cluster).list_topics(topic, timeout=PATIENCE)
    return len(listed.topics[topic].partitions)


def permit(cluster: Cluster, key: ApiKey, kind: ResourceType, prefix: str, *operations: AclOperation) -> None:
    """Permit a key these operations on all resources whose names have this prefix."""
    _add(cluster, [_binding(key, kind, prefix, one, AclPermissionType.ALLOW) for one in operations])


@contextlib.contextmanager
def denied(cluster: Cluster, key: ApiKey, kind: ResourceType, prefix: str, operation: AclOperation) -> Iterator[None]:
    """Forbid one operation during the block."""
    with _held(cluster, [_binding(key, kind, prefix, operation, AclPermissionType.DENY)]):
        yield


@contextlib.contextmanager
def permitted(cluster: Cluster, key: ApiKey, *rights: tuple[ResourceType, str, AclOperation]) -> Iterator[None]:
    """Permit some operations during the block."""
    with _held(cluster, [_binding(key, *right, AclPermissionType.ALLOW) for right in rights]):
        yield


@contextlib.contextmanager
def _held(cluster: Cluster, bindings: list[AclBinding]) -> Iterator[None]:
    _add(cluster, bindings)
    try:
        yield
    finally:
        admin = administrator(cluster)
        for deletion in admin.delete_acls([_exactly(binding) for binding in bindings]).values():
            deletion.result(PATIENCE)


def _exactly(binding: AclBinding) -> AclBindingFilter:
    fields = (binding.restype, binding.name, binding.resource_pattern_type, binding.principal, binding.host)
    return AclBindingFilter(*fields, binding.operation, binding.permission_type)


def _binding(
    key: ApiKey, kind: ResourceType, prefix: str, operation: AclOperation, permission: AclPermissionType
) -> AclBinding:
    return AclBinding(kind, prefix, ResourcePatternType.PREFIXED, f"User:{key.key}", "*", operation, permission)


def _add(cluster: Cluster, bindings: list[AclBinding]) -> None:
    admin = administrator(cluster)
    for creation in admin.create_acls(bindings).values():
        creation.result(PATIENCE)
