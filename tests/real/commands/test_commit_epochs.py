"""Commits with and without a leader epoch: by the epoch a consumer's own are told from those of the sync."""

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition

from appliance.groups.group_io import read_offsets
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.groups import list_groups
from appliance.settings.values import Side
from tests.support.engine import Pair, as_it_is, cluster_settings
from tests.support.groups import produce_numbered
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


def consumed(pair: Pair, topic: str, kind: str) -> None:
    """Read a record by librdkafka, and commit in one of its ways."""
    own = {"group.id": f"{kind}-{pair.tag}", "auto.offset.reset": "earliest", "enable.auto.commit": kind == "automatic"}
    consumer = Consumer({**pair.orange.client_configuration(), **own})
    try:
        consumer.subscribe([topic])
        message = consumer.poll(PATIENCE)
        assert message is not None
        if kind == "position":
            consumer.commit(asynchronous=False)
        elif kind == "message":
            consumer.commit(message, asynchronous=False)
        elif kind == "explicit":
            consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    finally:
        consumer.close()


async def test_which_commits_of_current_clients_carry_a_leader_epoch(pair: Pair) -> None:
    topic = pair.topic("epochs")
    produce_numbered(pair.producer(), topic, 5)
    for kind in ("automatic", "position", "message", "explicit"):
        consumed(pair, topic, kind)
    servers = {"bootstrap_servers": pair.orange.home_bootstrap, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(topic, group_id=f"aiokafka-{pair.tag}", enable_auto_commit=False, **servers) as other:
        await other.getone()
        await other.commit()
    async with KafkaCluster(cluster_settings(pair.orange, Side.SOURCE), as_it_is, pair.tag) as source:
        groups = [group for name, group in (await list_groups(source)).groups.items() if name.endswith(pair.tag)]
        committed, _ = await read_offsets(source, groups)
    epochs = {name.removesuffix(f"-{pair.tag}"): each[topic, 0].leader_epoch for name, each in committed.items()}
    assert epochs == {"automatic": 0, "position": 0, "message": 0, "explicit": -1, "aiokafka": -1}
