"""The checker can fail: the engine made wrong in one way is caught, in the run that a right one stands."""

import random
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.faults.checker import Kind
from tests.faults.injection.switches import CrashPoint
from tests.faults.nemesis import FAULTS
from tests.faults.network import Network
from tests.faults.run import Run

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]
# tests/simulation/test_mutations.py catches the same four for each submission.


@pytest.fixture
def run(both_networks: Network, seed: int, tmp_path: Path) -> Run:
    return Run(both_networks, seed, tmp_path)


async def is_caught(run: Run, *kinds: Kind, perhaps: Collection[Kind] = ()) -> None:
    """Returns when all of these violations have been found, and no others but perhaps those."""
    kinds_found: set[Kind] = set()

    async def found() -> bool:
        kinds_found.update(violation.kind for violation in run.violations_so_far())
        return kinds_found >= set(kinds)

    await run.until(found, f"show what is wrong with it, {', '.join(kinds)},")
    assert kinds_found <= {*kinds, *perhaps}


async def test_a_position_that_commits_separately_is_caught(run: Run, chance: random.Random) -> None:  # invariant A
    async with run.going("position committed separately"):
        assert run.violations_so_far() == []
        await FAULTS[f"crash {CrashPoint.COMMITTED.value}"].strike(run, chance)
        await is_caught(run, Kind.DUPLICATED, Kind.TORN)


async def test_reading_before_fencing_is_caught(run: Run) -> None:  # invariant C
    async with run.going():
        run.replicator.pause_alone()  # its tasks copy on while another takes over
        older = await run.replaced("read before fencing")
        try:
            assert run.violations_so_far() == []
            await is_caught(run, Kind.DUPLICATED, Kind.TORN, perhaps=[Kind.BACKWARDS])
        finally:
            await older.close()


async def test_an_aborted_batch_that_is_let_through_is_caught(run: Run) -> None:
    async with run.going("an aborted batch let through"):
        # What is too much may be taken for another record that is not seen yet.
        perhaps = [Kind.ALTERED, Kind.LOST]
        await is_caught(run, Kind.ABORTED, Kind.DUPLICATED, Kind.TORN, perhaps=perhaps)


async def test_a_retry_without_a_new_epoch_is_caught(run: Run, chance: random.Random) -> None:  # invariant B
    async with run.going("a retry without a new epoch"):
        assert run.violations_so_far() == []
        await FAULTS["reset between EndTxn and its answer"].strike(run, chance)
        await is_caught(run, Kind.DUPLICATED, Kind.TORN)
