"""The event loops and the clusters of tests/real.

Other suites have one loop for the session, which a new factory would replace, and kill the brokers of their clusters.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
import uvloop

from testbed.cluster import Cluster
from tests.conftest import plans
from tests.support.shared_clusters import shared_clusters
from tests.support.stalling import stalling

_HERE = Path(__file__).parent
_ON_UVLOOP = ("tunnel", "gateway", "dns")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run each part of the appliance on the event loop of ``bin/appliance``, which stalls if requested."""
    on_uvloop = item.path.parent in [_HERE / room for room in _ON_UVLOOP]
    name, loop = ("uvloop", uvloop.Loop) if on_uvloop else ("asyncio", asyncio.SelectorEventLoop)
    seed = item.config.getoption("--stalls")
    return {name: loop if seed is None else stalling(loop, f"{seed} {item.nodeid}")}


@pytest.fixture(params=[4, pytest.param(1, marks=pytest.mark.release)])
def each(request: pytest.FixtureRequest) -> int:
    """Every so many kills are tried: some for each submission, all for a release."""
    return int(request.param)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def clusters(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """The two plain clusters, the same in all workers; a module that changes what its links share has its own."""
    own = tmp_path_factory.getbasetemp()
    directory = own.parent if hasattr(pytestconfig, "workerinput") else own
    async with shared_clusters(plans(), directory) as (orange, grape):
        yield orange, grape
