"""Replicators with their Spark that wake up, or begin, after a failover: nothing of theirs comes into the copies."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from tests.faults.history import Partition
from tests.faults.network import Network
from tests.faults.run import Run
from tests.support.patience import PATIENCE
from tests.support.releases import archived
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHOUT_STATES = "626d1c5"
"""The newest commit of a release that knows no states."""


@pytest_asyncio.fixture(loop_scope="session")
async def run(both_networks: Network, seed: int, tmp_path: Path) -> AsyncIterator[Run]:
    async with Run(both_networks, seed, tmp_path).going() as going:
        yield going


async def ends(run: Run) -> Mapping[Partition, int]:
    """The end of each copy, markers included."""
    copies = run.partitions.values()
    return {copy: await asyncio.to_thread(end, run.network.destination, *copy) for copy in copies}


async def source_goes_on(run: Run) -> None:
    """Wait until every source partition was written to ten times more."""
    before = run.workload.written()

    async def written() -> bool:
        return all(count >= before[partition] + 10 for partition, count in run.workload.written().items())

    await run.until(written, "let the source be written to")


async def says_why_it_copies_nothing(run: Run) -> None:
    """Wait until the replicator has logged by whom and why the link was promoted."""
    await run.replicator.process.wait_for_line("state.*promoted.*by=.*a fault", PATIENCE)


@pytest.mark.release  # held by tests/real/commands/test_states.py
async def test_no_replicator_writes_after_a_failover_be_it_awakened_or_new(run: Run) -> None:
    run.replicator.pause()
    await run.command("failover", "--yes", "--why", "a fault")
    held = await ends(run)
    run.replicator.resume()
    await says_why_it_copies_nothing(run)
    await run.replicator.process.wait_for_line("topics to copy topics=0", PATIENCE)
    await source_goes_on(run)
    assert await ends(run) == held
    assert run.replicator.defects() == []

    await run.replicator.replace()
    await says_why_it_copies_nothing(run)
    await source_goes_on(run)
    assert await ends(run) == held
    assert run.replicator.defects() == []


@pytest.mark.release  # needs this repository's history
async def test_a_release_that_knows_no_states_writes_nothing_after_a_failover(run: Run, tmp_path: Path) -> None:
    newer, run.replicator = run.replicator, run.older(archived(WITHOUT_STATES, tmp_path / "older"))
    await newer.close()
    before = await ends(run)
    await run.replicator.start()

    async def copied() -> bool:
        return all(held > before[copy] for copy, held in (await ends(run)).items())

    await run.until(copied, "copy anything")
    run.replicator.pause()
    await run.command("failover", "--yes")
    held = await ends(run)
    run.replicator.resume()
    for _ in range(2):
        await run.replicator.process.wait_for_line("a newer appliance's", PATIENCE)
        await source_goes_on(run)
        assert await ends(run) == held
        awakened = run.replicator.process
        run.replicator.kill()  # it begins anew
        async with asyncio.timeout(PATIENCE):
            while run.replicator.process is awakened:
                await asyncio.sleep(0.1)
