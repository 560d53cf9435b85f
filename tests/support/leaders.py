"""Moves of leaders: partitions get other replicas, or another order of replicas, while all brokers live."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, PartitionMetadata
from kio.schema.alter_partition_reassignments.v0 import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kio.schema.alter_partition_reassignments.v0.request import ReassignablePartition, ReassignableTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Partition
from appliance.settings.secret import Secret
from appliance.settings.values import ClusterSettings, SaslMechanism, Side
from testbed.cluster import Cluster
from tests.support.administration import administrator, wait_for_leader
from tests.support.patience import PATIENCE

Replicas = Mapping[Partition, Sequence[int]]
"""The nodes that hold each partition, the preferred leader first."""


async def move(cluster: Cluster, replicas: Replicas) -> None:
    """Give partitions these replicas, and wait until all are in sync and the first of each leads it."""
    await _reassign(cluster, replicas)
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(_moved, cluster, replicas):
            await asyncio.sleep(0.1)


def described(cluster: Cluster, topics: Sequence[str]) -> dict[Partition, PartitionMetadata]:
    """The cluster's metadata of each partition of these topics."""
    known = administrator(cluster).list_topics(timeout=PATIENCE).topics
    return {Partition(topic, number): found for topic in topics for number, found in known[topic].partitions.items()}


def _moved(cluster: Cluster, replicas: Replicas) -> bool:
    """True if these leaders lead; otherwise request an election of the preferred leaders."""
    known = described(cluster, sorted({topic for topic, _ in replicas}))
    states = {key: (known[key].leader, known[key].replicas, set(known[key].isrs)) for key in replicas}
    if states == {key: (nodes[0], list(nodes), set(nodes)) for key, nodes in replicas.items()}:
        return True
    admin = administrator(cluster)
    with contextlib.suppress(KafkaException):  # not in sync yet, most likely
        admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(*key) for key in replicas]).result(PATIENCE)
    return False


async def _reassign(cluster: Cluster, replicas: Replicas) -> None:
    by_topic: dict[str, list[ReassignablePartition]] = {}
    for (topic, number), nodes in replicas.items():
        brokers = tuple(BrokerId(node) for node in nodes)
        by_topic.setdefault(topic, []).append(ReassignablePartition(partition_index=i32(number), replicas=brokers))
    topics = tuple(ReassignableTopic(name=TopicName(t), partitions=tuple(p)) for t, p in by_topic.items())
    async with KafkaCluster(_settings(cluster), _as_is, "operator") as connected:
        controller = await connected.controller()
        answer = await controller.call(
            AlterPartitionReassignmentsRequest(topics=topics), AlterPartitionReassignmentsResponse
        )
    check(answer.error_code, "reassign")
    for each in [partition for topic in answer.responses for partition in topic.partitions]:
        check(each.error_code, "reassign a partition")


def _settings(cluster: Cluster) -> ClusterSettings:
    security, keys = cluster.plan.security, cluster.plan.api_keys
    key, secret = (keys[0].key, keys[0].secret) if keys else ("", Secret(""))
    targets = cluster.home_targets
    return ClusterSettings(
        Side.SOURCE, cluster.plan.name, targets, key, secret, security, SaslMechanism.PLAIN, cluster.ca_file
    )


async def _as_is(host: str) -> tuple[str, ...]:
    return (host,)


async def follower_leads(cluster: Cluster, topic: str) -> None:
    """Kill broker 1, which leads a topic, and let broker 2 lead it, which was away: what came meanwhile is lost."""
    await cluster.kill(1)
    await cluster.broker(2).launch()
    await asyncio.to_thread(wait_for_leader, cluster, topic, 2)


async def elect_preferred_leaders(cluster: Cluster) -> None:
    """Leaders move while all brokers live; asked again until the one that was away is in sync."""
    admin = administrator(cluster)
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(_elected, admin):
            await asyncio.sleep(0.5)


def _elected(admin: AdminClient) -> bool:
    """True if the first replica of every partition leads it now."""
    with contextlib.suppress(KafkaException):
        admin.elect_leaders(ElectionType.PREFERRED, None).result(PATIENCE)
    topics = admin.list_topics(timeout=PATIENCE).topics.values()
    return all(partition.leader == partition.replicas[0] for topic in topics for partition in topic.partitions.values())
