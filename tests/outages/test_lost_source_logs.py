"""A source that dies: a log that lost records is not spliced on, and a log that kept them is read on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from appliance.replicator.resume import Choice, resume
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan
from tests.support.administration import wait_for_leader
from tests.support.engine import Pair
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("moved", [False, True], ids=["read", "moved by a command"])
async def test_a_source_log_that_lost_what_was_copied_is_not_spliced_on(
    pair: Pair, three_brokers: Cluster, moved: bool
) -> None:
    # The leader that had the records is gone, and the operator has elected one that never got them (KIP-320).
    unclean = Pair(three_brokers, pair.grape, pair.tag)
    topic = unclean.topic_on("unclean", leader=1, follower=2)
    produce(unclean.producer(), topic, 10)
    async with unclean.engine() as engine:
        await engine.copy_all()
        await three_brokers.kill(2)
        produce(unclean.producer(), topic, 10)
        await engine.copy_all()
        if moved:  # case 629: that position had no leader epoch
            assert await resume(unclean.settings(), Choice(topic, 0, "latest"), lambda _: None) == 1
        await three_brokers.kill(1)
        await three_brokers.broker(2).launch()
        await asyncio.to_thread(wait_for_leader, three_brokers, topic, 2)
        produce(unclean.producer(), topic, 30)
        fault = str(await engine.until_stopped(topic))
    assert "the source's log was truncated: from offset 10 on it does not hold what was copied up to 20" in fault
    assert len(unclean.rows(unclean.grape, unclean.naming.destination(topic), 1)[0]) == 20


@pytest_asyncio.fixture(loop_scope="session")
async def alone(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with Cluster(ClusterPlan.plain("sessions", address="127.0.3.31", heap_megabytes=384), tmp_path) as cluster:
        yield cluster


async def test_a_broker_that_restarts_or_has_no_room_for_a_session_is_read_on(pair: Pair, alone: Cluster) -> None:
    restarted = Pair(alone, pair.grape, pair.tag)
    topic = restarted.topic("restarted", 3)
    produce(restarted.producer(), topic, 10)
    async with restarted.engine() as engine:
        await engine.copy_all()
        before = await engine.fetch_session()
        await alone.restart(0)
        produce(restarted.producer(), topic, 10, 1)
        await engine.copy_all()
        assert (await engine.fetch_session()).id != before.id
        with (alone.broker(0).directory / "server.properties").open("a") as properties:
            properties.write("\nmax.incremental.fetch.session.cache.slots=0\n")
        await alone.restart(0)
        produce(restarted.producer(), topic, 10, 2)
        await engine.copy_all()
        assert engine.fetcher._session._id == 0
        produce(restarted.producer(), topic, 10, 0)
        await engine.copy_all()
    restarted.compare(topic, 3)
