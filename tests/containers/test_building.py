"""The first ``docker-compose up -d`` on a VM builds the image, and no settings beside the Dockerfile get into it."""

import mmap
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests.containers.image import limits
from tests.containers.link import Link
from tests.containers.sites import GRAPE
from tests.support.docker_engine import Engine, engine
from tests.support.image import furnish
from tests.support.namespace import namespaces

pytestmark = pytest.mark.asyncio(loop_scope="session")
SERVICES = ("gateway", "replicator", "control-center")
ALL_THAT_A_BUILD_SEES = "FROM scratch\nCOPY . /\nCMD none\n"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def fresh() -> AsyncIterator[Engine]:
    """The engine of a VM that has no image yet."""
    with namespaces(["fresh"]) as [machine]:
        async with engine(machine) as made:
            yield made


@pytest.fixture
def folder(link: Link, fresh: Engine) -> Path:
    """A prepared folder of the destination VM, with setenv.sh, before the first start."""
    return Path(shutil.copytree(link.folder(GRAPE), fresh.directory / link.folder(GRAPE).name, dirs_exist_ok=True))


def found_in(archive: Path, words: tuple[str, ...]) -> list[str]:
    """The words that any layer of an image in a file contains."""
    with archive.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as layers:
        return [word for word in words if layers.find(word.encode()) >= 0]


async def test_a_build_sees_no_secret_of_the_folder(link: Link, fresh: Engine, folder: Path) -> None:
    assert [secret for secret in link.secrets if secret in (folder / "setenv.sh").read_text()]
    (fresh.directory / "Dockerfile").write_text(ALL_THAT_A_BUILD_SEES)
    fresh.docker("build", "--file", str(fresh.directory / "Dockerfile"), "--tag", "seen", str(folder))
    fresh.docker("save", "--output", str(fresh.directory / "seen.tar"), "seen")
    assert found_in(fresh.directory / "seen.tar", (*link.secrets, "class Settings")) == ["class Settings"]


@pytest.mark.release  # the suites' own image is built from the same Dockerfile, and the services' one image is rendered
async def test_the_first_start_builds_the_image_once_for_all_containers(
    link: Link, fresh: Engine, folder: Path
) -> None:
    arguments = dict(argument.split("=") for argument in furnish(folder, fresh))
    build = {"build": {"context": ".", "args": arguments}}
    override = {"services": dict.fromkeys(SERVICES, build)}
    override["services"]["gateway"] = build | limits()
    (folder / "docker-compose.override.yml").write_text(yaml.safe_dump(override))
    said = fresh.compose(folder, "up", "-d")
    try:
        assert said.count("Successfully tagged") == 1
        assert len(fresh.compose(folder, "ps", "--quiet").split()) == len(SERVICES)
        fresh.docker("save", "--output", str(fresh.directory / "image.tar"), link.image)
    finally:
        fresh.compose(folder, "down")
    looked_for = (*link.secrets, "appliance/driver/daemon.py")
    assert found_in(fresh.directory / "image.tar", looked_for) == ["appliance/driver/daemon.py"]
