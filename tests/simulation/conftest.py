"""Links of one partition, for cases of stops and of what operators do about them."""

import pytest

from tests.simulation import stopping
from tests.simulation.stopping import Stop, Stopped


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Stopped:
    """A link that has copied ten records."""
    return Stopped(monkeypatch)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Stop:
    """A link that has stopped for a reason of this kind."""
    return lambda kind: stopping.stopped(kind, monkeypatch)
