"""Three clusters of one broker each for all tests of a file: these stop brokers, and the order is one for a cluster."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.order_clusters import Ordered, ordered


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def three(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ordered]:
    async with ordered(3, tmp_path_factory.mktemp("ordered")) as clusters:
        yield clusters
