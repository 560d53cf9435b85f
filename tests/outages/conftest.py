"""Three plain brokers, which tests kill, and between which they move leaders."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from appliance.settings.values import SecurityProtocol
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from tests.support.administration import clear, wait_until_in_sync


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def three(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    nodes = tuple(Node(n, f"127.0.3.{n + 21}") for n in range(3))
    plan = ClusterPlan("three", nodes, SecurityProtocol.PLAINTEXT)
    async with Cluster(plan, tmp_path_factory.mktemp("three")) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def three_brokers(three: Cluster) -> Cluster:
    """The three brokers, all running and in sync, and without the topics of the tests before."""
    dead = [broker for broker in map(three.broker, range(3)) if not broker.process.running]
    for broker in dead:
        await broker.launch()
    await three._wait_until_ready(dead)
    await asyncio.to_thread(clear, three)
    await asyncio.to_thread(wait_until_in_sync, three)
    return three
