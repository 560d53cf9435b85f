"""``bin/appliance verify`` by Spark: the same results as in one process, and one that is killed goes on."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from appliance.verify.work import BLOCK_OFFSETS
from testbed.process import OwnedProcess
from tests.support.administration import delete_before
from tests.support.commands import command, command_line, settings_file
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG = 2 * BLOCK_OFFSETS + 1000
"""Records of a topic that is verified in three parts."""


def report(printed: str) -> dict[str, Any]:
    """The JSON of a report, without its times."""
    told: dict[str, Any] = json.loads(printed)
    return {name: value for name, value in told.items() if name not in ("began", "ended")}


async def copied(pair: Pair, topic: str, count: int = LONG) -> None:
    """A topic of so many records, and its copy."""
    producer = pair.producer(**{"linger.ms": 50, "batch.size": 200_000, "queue.buffering.max.messages": 3_000_000})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
        if not number % 100_000:
            producer.poll(0)
    assert producer.flush(PATIENCE) == 0
    async with pair.engine() as engine:
        await engine.copy_all()


@pytest.mark.parametrize("count", [1000, pytest.param(LONG, marks=pytest.mark.release)])  # held by test_work.py
async def test_spark_gives_the_same_results_as_one_process(pair: Pair, tmp_path: Path, count: int) -> None:
    long, orders, behind = pair.topic("long"), pair.topic("orders", 3), pair.topic("behind")
    for partition in range(2):
        produce(pair.producer(), orders, 300, partition)
    produce(pair.producer(), behind, 10)
    await copied(pair, long, count)
    produce(pair.producer(), behind, 7)
    env_file = settings_file(pair, tmp_path, TASKS="2")
    alone = await command("verify", env_file, "--json", "--wait", "0", "--spark", "no")
    shared = await command("verify", env_file, "--json", "--wait", "0", "--spark", "yes")
    assert (alone.returncode, shared.returncode) == (1, 1), shared.stderr
    assert report(shared.stdout) == report(alone.stdout)
    states = {(each["topic"], each["partition"]): each["state"] for each in report(shared.stdout)["partitions"]}
    assert states == {(behind, 0): "behind", (long, 0): "equal", **{(orders, number): "equal" for number in range(3)}}


@pytest.mark.release  # held by tests/unit/verify/test_work.py
async def test_a_verification_that_is_killed_goes_on_and_reads_nothing_twice(pair: Pair, tmp_path: Path) -> None:
    long = pair.topic("long")
    await copied(pair, long)
    env_file, kept = settings_file(pair, tmp_path, TASKS="1"), tmp_path / "kept.json"
    line = command_line("verify", env_file, "--json", "--spark", "yes", "--resume", str(kept))
    first = await OwnedProcess.start("verify", line, tmp_path / "first.log", {**os.environ, "TMPDIR": str(tmp_path)})
    try:

        async def found() -> bool:
            return kept.exists() and '"result"' in kept.read_text()

        await first.wait_until(found, PATIENCE, "find a result")
    finally:
        await first.kill()
    *_, known = (json.loads(each) for each in kept.read_text().splitlines() if '"result"' in each)
    assert known["result"]["state"] == "equal"
    # What is verified already may be deleted meanwhile: it is not read again.
    if known["job"]["first"]:
        await asyncio.to_thread(delete_before, pair.grape, f"{long}.copy", 0, known["job"]["destination"]["end"])
    again = await command("verify", env_file, "--json", "--spark", "no", "--resume", str(kept))
    assert (again.returncode, again.stderr) == (0, "")
    (partition,) = report(again.stdout)["partitions"]
    assert (partition["state"], partition["records"]) == ("equal", LONG)
    assert not kept.exists()
