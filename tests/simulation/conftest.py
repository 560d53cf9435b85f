"""Links of one partition, for cases of stops and of what operators do about them."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.simulation import stopping
from tests.simulation.loop import time_of_day
from tests.simulation.order_scenario import Calm, Clusters
from tests.simulation.stopping import Stop, Stopped

_EPOCH = 1_700_000_000
"""The time of day at which clusters of an order begin, in seconds since 1970."""


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
    """Makes clusters of an order, whose clock is theirs, and lets go of all that runs there at the end."""
    with contextlib.ExitStack() as stack:

        def make(clusters: int) -> Calm:
            order = Calm(clusters)
            stack.callback(order.loop.close)
            stack.enter_context(time_of_day(order.loop, _EPOCH))
            return order

        yield make
