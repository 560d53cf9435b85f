"""Links of one partition, for cases of stops and of what operators do about them."""

from collections.abc import Iterator

import pytest

from tests.simulation import stopping
from tests.simulation.order_scenario import Calm, Clusters
from tests.simulation.stopping import Stop, Stopped


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Stopped:
    """A link that has copied ten records."""
    return Stopped(monkeypatch)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Stop:
    """A link that has stopped for a reason of this kind."""
    return lambda kind: stopping.stopped(kind, monkeypatch)


@pytest.fixture
def calm() -> Iterator[Clusters]:
    """Makes clusters of an order, and lets go of all that runs there at the end."""
    made: list[Calm] = []

    def make(clusters: int) -> Calm:
        made.append(Calm(clusters))
        return made[-1]

    yield make
    for each in made:
        each.loop.close()
