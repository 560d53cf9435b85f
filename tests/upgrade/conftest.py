"""The last release and this one, and the two networks between which they copy."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from appliance.version import VERSION
from tests.faults.network import Network, network
from tests.support.releases import CHECKOUT, Release, archived, last_release


@pytest.fixture(scope="session")
def older(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The last release."""
    section = last_release()
    code = archived(section.commit, tmp_path_factory.mktemp("release") / "code")
    return Release(section.version, code).install()


@pytest.fixture(scope="session")
def newer() -> Release:
    """This checkout."""
    return Release(VERSION, CHECKOUT).install()


@pytest.fixture
def chance() -> random.Random:
    """The chance of a test; a failure shows the seed among the local values."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def both_networks(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Network]:
    directory: Path = tmp_path_factory.mktemp("networks")
    async with network(directory) as made:
        yield made
