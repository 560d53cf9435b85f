"""Two sides for all tests of the suite, and a link between them that has been set up as a user does."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.containers.base import base_archive, locked_files
from tests.containers.engine import sweep
from tests.containers.image import adapt, carry, furnish
from tests.containers.link import Link
from tests.containers.requirements import missing
from tests.containers.sites import GRAPE, ORANGE
from tests.containers.stage import Stage
from tests.containers.stage import stage as made_stage


def pytest_configure(config: pytest.Config) -> None:
    if lacking := missing():
        pytest.exit(lacking, returncode=1)
    # Each test takes seconds: it is named as it comes.
    config.option.verbose = max(config.option.verbose, 1)


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for settings, logs and the clusters' files; slow downloads are done before anything runs."""
    sweep()
    base_archive()
    locked_files()
    return tmp_path_factory.mktemp("sides")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(directory: Path) -> AsyncIterator[Stage]:
    async with made_stage(directory) as made:
        yield made


@dataclass(frozen=True, slots=True)
class Running:
    """The link, what its first ``docker-compose up -d`` printed, and its image as a file."""

    link: Link
    first_up: str
    archive: Path


@pytest.fixture(scope="session")
def running(stage: Stage) -> Running:
    """The link from orange to grape."""
    link = Link(stage, ORANGE, GRAPE)
    link.clone()
    link.prepare()
    adapt(link)
    furnish(link, GRAPE)
    first_up = link.up(GRAPE)
    archive = stage.engines[GRAPE.name].directory / "image.tar"
    carry(link, archive)
    link.up(ORANGE)
    return Running(link, first_up, archive)


@pytest.fixture(scope="session")
def link(running: Running) -> Link:
    return running.link
