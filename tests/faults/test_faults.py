"""A link without any fault; and one with one fault after the other, in which nothing is wrong after each."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.console.firing import firing
from tests.faults.nemesis import FAULTS
from tests.faults.network import Network
from tests.faults.run import Run

_OF_FAULTS = {"Silent", "Restarts", "SourceUnreachable", "DestinationUnreachable", "PartitionUnknown"}
"""The alerts of what the faults do for minutes: they kill brokers and replicators."""

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def run(both_networks: Network, seed: int, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Run]:
    directory: Path = tmp_path_factory.mktemp("run")
    async with Run(both_networks, seed, directory).going() as going:
        yield going


@pytest.mark.release  # what goes on between the faults is judged too
async def test_without_any_fault_the_copies_are_the_sources_committed_log(
    both_networks: Network, seed: int, tmp_path: Path
) -> None:
    async with Run(both_networks, seed, tmp_path).going() as run:
        await asyncio.sleep(5.0)
        await run.goes_on()
        assert run.violations_so_far() == []
        assert await run.finish() == []
        assert run.defects() == []


async def test_copying_goes_on_and_nothing_is_wrong_after(run: Run, fault: str, chance: random.Random) -> None:
    await FAULTS[fault].strike(run, chance)
    await run.goes_on()
    assert run.violations_so_far() == []
    assert run.defects() == []


async def test_in_the_end_the_copies_are_the_sources_committed_log(run: Run) -> None:
    assert await run.finish() == []
    assert run.defects() == []
    assert len(run.views.looks) > 10


async def test_no_alert_has_told_what_no_fault_was(run: Run, tmp_path: Path) -> None:
    (fires,) = firing(tmp_path, [run.views.series])
    assert {name for needs in fires.values() for name, _ in needs} <= _OF_FAULTS
