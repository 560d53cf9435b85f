"""``--soak MINUTES``: faults by chance, for as long as is asked for."""

import random
import time
from pathlib import Path

import pytest

from tests.faults.nemesis import FAULTS
from tests.faults.network import Network
from tests.faults.run import Run

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_faults_by_chance_leave_nothing_wrong(
    both_networks: Network,
    seed: int,
    chance: random.Random,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    end = time.monotonic() + 60 * request.config.getoption("--soak")
    async with Run(both_networks, seed, tmp_path).going() as run:
        while time.monotonic() < end:
            fault = chance.choice(list(FAULTS))
            with capsys.disabled():
                print(f"{time.strftime('%H:%M:%S')} {fault}", flush=True)
            await FAULTS[fault].strike(run, chance)
            await run.goes_on()
            assert run.violations_so_far() == [], fault
            assert run.defects() == [], fault
        assert await run.finish() == []
