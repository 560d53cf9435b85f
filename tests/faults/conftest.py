"""``--seed`` and ``--soak``, and the two networks that all tests of the suite share."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.faults.nemesis import FAULTS
from tests.faults.network import Network, network
from tests.faults.releases import HELD_BY
from tests.support.spark_classes import spark_classes

__all__ = ["spark_classes"]

SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("faults")
    group.addoption("--seed", type=int, metavar="N", help="what chance begins with; printed at the start")
    group.addoption("--soak", type=float, metavar="MINUTES", help="faults by chance for so long, instead of each once")


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--seed")
    config.stash[SEED] = random.randrange(2**32) if given is None else given
    # Minutes go by: each fault is named as it comes.
    config.option.verbose = max(config.option.verbose, 1)


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.get_terminal_writer().line(f"seed {session.config.stash[SEED]}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The faults, in an order by chance."""
    if "fault" in metafunc.fixturenames:
        names = list(FAULTS)
        random.Random(metafunc.config.stash[SEED]).shuffle(names)
        marks = {name: [pytest.mark.release] if name in HELD_BY else [] for name in names}
        metafunc.parametrize("fault", [pytest.param(name, marks=marks[name]) for name in names])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Either the soak or all the others."""
    soaks = config.getoption("--soak") is not None
    chosen = [item for item in items if (item.path.name == "test_soak.py") == soaks]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    return request.config.stash[SEED]


@pytest.fixture
def chance(seed: int, request: pytest.FixtureRequest) -> random.Random:
    """A test's own, so that it draws the same whichever tests ran before."""
    return random.Random(f"{seed} {request.node.name}")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def both_networks(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Network]:
    directory: Path = tmp_path_factory.mktemp("networks")
    async with network(directory) as made:
        yield made
