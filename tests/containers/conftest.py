"""Two sides for all tests of the suite, and a link between them, set up as by a user."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.containers.image import adapt, load
from tests.containers.link import Link
from tests.containers.page import follow
from tests.containers.sites import GRAPE, ORANGE
from tests.containers.vpcs import Vpcs
from tests.containers.vpcs import vpcs as made_vpcs
from tests.support.docker_engine import sweep
from tests.support.image import image_archive
from tests.support.requirements import missing


def pytest_configure(config: pytest.Config) -> None:
    if lacking := missing("containers"):
        pytest.exit(lacking, returncode=1)
    # Each test takes seconds, so print its name at its start.
    config.option.verbose = max(config.option.verbose, 1)


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for settings, logs and the clusters' files; the image is built before any process starts."""
    sweep()
    image_archive()
    return tmp_path_factory.mktemp("sides")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def vpcs(directory: Path) -> AsyncIterator[Vpcs]:
    async with made_vpcs(directory) as made:
        yield made


@pytest.fixture(scope="session")
def link(vpcs: Vpcs) -> Link:
    """The link from orange to grape, set up on both VMs by the commands of docs/start/two-vms.md."""
    made = Link(vpcs, ORANGE, GRAPE)
    made.clone()
    adapt(made)
    load(made)
    follow(made)
    return made
