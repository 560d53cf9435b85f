"""Topics of one name on both sides, while the broker that leads the topic of the lanes' names dies."""

import asyncio
import random

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.link.model.naming import PRODUCERS, REGISTRY
from testbed.cluster import Cluster
from tests.support.administration import make_topic
from tests.support.engine import LANES, Pair
from tests.support.mesh import Mesh, copy_all

pytestmark = pytest.mark.asyncio(loop_scope="session")

_LEADER = 2
COMPACT = {"cleanup.policy": "compact"}


@pytest.fixture
def mesh(pair: Pair, three_brokers: Cluster) -> Mesh:
    """A cluster of one broker and one of three, whose last broker leads nothing but the lanes' names."""
    made = Mesh({"orange": pair.orange, "three": three_brokers}, pair.tag)
    into = next(link.naming for link in made.links if link.grape is three_brokers)
    for name, partitions in {into.positions_topic: LANES, into.offsets_topic: LANES, REGISTRY: 1}.items():
        make_topic(three_brokers, NewTopic(name, partitions, replica_assignment=[[0]] * partitions, config=COMPACT))
    led = NewTopic(PRODUCERS, 1, replica_assignment=[[_LEADER, 1, 0]], config={"min.insync.replicas": "2"} | COMPACT)
    make_topic(three_brokers, led)
    return made


async def test_the_names_are_known_though_their_leader_was_stopped(mesh: Mesh, three_brokers: Cluster) -> None:
    topic = f"orders-{mesh.tag}"
    make_topic(mesh.clusters["orange"], NewTopic(topic, 1, 1))
    make_topic(three_brokers, NewTopic(topic, 1, replica_assignment=[[0]]))
    chance = random.Random(seed := random.randrange(2**32))
    for dies in (False, True):
        async with mesh.engines() as engines:  # each time in new epochs, whose names are written and read
            for name in mesh.clusters:
                mesh.produce(name, topic, 50, abort=None)
                mesh.produce(name, topic, 20, abort=False)
            for engine in engines:
                await engine.prepare()
            copying = asyncio.create_task(copy_all(engines))
            if dies:
                await asyncio.sleep(chance.uniform(0, 0.5))
                await three_brokers.kill(_LEADER)
            await copying
    mesh.require_all(topic)
    names = AdminClient(three_brokers.client_configuration()).list_topics(PRODUCERS).topics[PRODUCERS]
    assert names.partitions[0].leader != _LEADER, f"seed {seed}"
