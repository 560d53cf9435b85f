"""What an operator does to topics, with an independent client."""

from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from appliance.demo.cluster import Cluster

_SECONDS = 40.0


def configure(cluster: Cluster, topic: str, **configs: str | None) -> None:
    """Change a topic's configuration; None unsets."""
    entries = [
        ConfigEntry(
            key, value, incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        )
        for key, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient(cluster.client_configuration())
    for change in admin.incremental_alter_configs([resource]).values():
        change.result(_SECONDS)


def configuration(cluster: Cluster, topic: str) -> dict[str, str]:
    """What is set on a topic itself."""
    admin = AdminClient(cluster.client_configuration())
    (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    entries = described.result(_SECONDS).values()
    return {entry.name: entry.value for entry in entries if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}


def delete_before(cluster: Cluster, topic: str, partition: int, offset: int) -> None:
    """Delete a partition's records before an offset, as retention does."""
    admin = AdminClient(cluster.client_configuration())
    for deletion in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        deletion.result(_SECONDS)


def partitions(cluster: Cluster, topic: str) -> int:
    """How many partitions a topic has."""
    listed = AdminClient(cluster.client_configuration()).list_topics(topic, timeout=_SECONDS)
    return len(listed.topics[topic].partitions)
