"""The event loops of tests/real. Other suites have one loop for the session, which a new factory would replace."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import uvloop

from tests.support.stalling import stalling

_HERE = Path(__file__).parent
_ON_UVLOOP = ("tunnel", "gateway", "dns")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run each part of the appliance on the event loop of ``bin/appliance``, which stalls if requested."""
    on_uvloop = item.path.parent in [_HERE / room for room in _ON_UVLOOP]
    name, loop = ("uvloop", uvloop.Loop) if on_uvloop else ("asyncio", asyncio.SelectorEventLoop)
    seed = item.config.getoption("--stalls")
    return {name: loop if seed is None else stalling(loop, f"{seed} {item.nodeid}")}


@pytest.fixture(params=[4, pytest.param(1, marks=pytest.mark.release)])
def each(request: pytest.FixtureRequest) -> int:
    """Every so many kills are tried: some for each submission, all for a release."""
    return int(request.param)
