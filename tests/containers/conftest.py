"""Two sides for all tests of the suite, and a link between them, set up as by a user."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.containers.base import base_archive, locked_files
from tests.containers.engine import sweep
from tests.containers.image import adapt, carry, furnish
from tests.containers.link import Link
from tests.containers.sites import GRAPE, ORANGE
from tests.containers.vpcs import Vpcs
from tests.containers.vpcs import vpcs as made_vpcs
from tests.support.requirements import missing


def pytest_configure(config: pytest.Config) -> None:
    if lacking := missing("containers"):
        pytest.exit(lacking, returncode=1)
    # Each test takes seconds, so print its name at its start.
    config.option.verbose = max(config.option.verbose, 1)


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for settings, logs and the clusters' files; slow downloads are done before any process starts."""
    sweep()
    base_archive()
    locked_files()
    return tmp_path_factory.mktemp("sides")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def vpcs(directory: Path) -> AsyncIterator[Vpcs]:
    async with made_vpcs(directory) as made:
        yield made


@dataclass(frozen=True, slots=True)
class Running:
    """The link, the output of its first ``docker-compose up -d``, and its image as a file."""

    link: Link
    first_up: str
    archive: Path


@pytest.fixture(scope="session")
def running(vpcs: Vpcs) -> Running:
    """The link from orange to grape."""
    link = Link(vpcs, ORANGE, GRAPE)
    link.clone()
    link.prepare()
    adapt(link)
    furnish(link, GRAPE)
    first_up = link.up(GRAPE)
    archive = vpcs.engines[GRAPE.name].directory / "image.tar"
    carry(link, archive)
    link.up(ORANGE)
    return Running(link, first_up, archive)


@pytest.fixture(scope="session")
def link(running: Running) -> Link:
    return running.link
