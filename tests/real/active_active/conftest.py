"""Clusters of these tests alone, which change a topic that all links share, and meshes of links over them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from testbed.cluster import Cluster
from tests.conftest import plain, plans
from tests.support.engine import Pair
from tests.support.forgetful import forgetful
from tests.support.mesh import Mesh


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clusters(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """Clusters of these tests alone, which change a topic that all links share."""
    orange, grape = (Cluster(plan, tmp_path_factory.mktemp("own")) for plan in plans())
    async with orange, grape:
        yield orange, grape


@pytest.fixture
def two(pair: Pair) -> Mesh:
    """Two clusters that copy to each other."""
    return Mesh({"orange": pair.orange, "grape": pair.grape}, pair.tag)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lime(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """A third cluster, which forgets idle transactional ids after a second."""
    async with Cluster(forgetful(plain("lime", "127.0.3.3")), tmp_path_factory.mktemp("lime")) as cluster:
        yield cluster


@pytest.fixture
def three(pair: Pair, lime: Cluster) -> Mesh:
    """Three clusters, each of which copies to both others."""
    return Mesh({"orange": pair.orange, "grape": pair.grape, "lime": lime}, pair.tag)
