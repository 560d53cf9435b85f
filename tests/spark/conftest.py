"""The classes of Spark's driver, and a link between two secured clusters, for all tests of the suite."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.link import Link, link
from tests.support.spark_classes import spark_classes

__all__ = ["spark_classes"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Link]:
    """Its tests clear it first: those of one file after the other have the same."""
    async with link(tmp_path_factory.mktemp("link")) as made:
        yield made
