"""Three brokers of a test's own, to be killed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from appliance.settings.values import SecurityProtocol
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node


@pytest_asyncio.fixture(loop_scope="session")
async def three_brokers(tmp_path: Path) -> AsyncIterator[Cluster]:
    nodes = tuple(Node(n, f"127.0.3.{n + 21}") for n in range(3))
    async with Cluster(ClusterPlan("lossy", nodes, SecurityProtocol.PLAINTEXT), tmp_path) as cluster:
        yield cluster
