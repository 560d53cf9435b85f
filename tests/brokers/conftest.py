"""The clusters that all tests of the suite share."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.brokers.versions import Versions
from tests.support.spark_classes import spark_classes

__all__ = ["spark_classes"]


def pytest_configure(config: pytest.Config) -> None:
    # The tests take minutes, so print the name of each pair at its start.
    config.option.verbose = max(config.option.verbose, 1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def versions(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Versions]:
    async with Versions(tmp_path_factory.mktemp("versions")) as made:
        yield made
