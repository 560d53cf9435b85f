"""A link that keeps its copies to itself, while the topic of the lanes' names has too few replicas in sync."""

import asyncio

import pytest
from confluent_kafka.admin import NewTopic

from appliance.link.model.naming import PRODUCERS
from testbed.cluster import Cluster
from tests.support.administration import make_topic, wait_for_leader
from tests.support.engine import LANES, Pair
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")

COMPACT = {"cleanup.policy": "compact"}


@pytest.mark.parametrize("least", ["1", "2"])
async def test_case_783_names_that_cannot_be_left_now_keep_no_link_that_is_alone_waiting(
    pair: Pair, three_brokers: Cluster, least: str
) -> None:
    # The release before does not write there. A transaction that touches the topic cannot end, not even by an abort.
    alone = Pair(pair.orange, three_brokers, pair.tag)
    topic, naming = alone.topic("orders"), alone.naming
    for name in (naming.positions_topic, naming.offsets_topic):
        make_topic(three_brokers, NewTopic(name, LANES, replica_assignment=[[0]] * LANES, config=COMPACT))
    make_topic(three_brokers, NewTopic(naming.destination(topic), 1, replica_assignment=[[0]]))
    config = {"min.insync.replicas": least} | COMPACT
    make_topic(three_brokers, NewTopic(PRODUCERS, 1, replica_assignment=[[2, 1]], config=config))
    produce(alone.producer(), topic, 10)
    async with alone.engine() as engine:
        await engine.prepare()
        await three_brokers.kill(2)
        await asyncio.to_thread(wait_for_leader, three_brokers, PRODUCERS, 1)
        async with asyncio.timeout(60):
            await engine.copy_all()
    assert len(alone.compare(topic)[0]) == 10
