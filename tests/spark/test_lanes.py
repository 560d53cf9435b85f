"""Other lanes for a link whose replicator runs, with its Spark job."""

import asyncio

import pytest

from tests.support.link import Link
from tests.support.patience import PATIENCE
from tests.support.rows import read_partitions, until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTITIONS = 4


@pytest.fixture
def orders(shared: Link) -> Link:
    """A new link with one source topic, ``orders``."""
    shared.clear()
    shared.make_topic(shared.orange, "orders", PARTITIONS)
    return shared


async def produced(on: Link, each: int, before: int) -> None:
    """Produce to every partition, and wait until all is copied."""
    for partition in range(PARTITIONS):
        await asyncio.to_thread(on.produce, "orders", each, partition)
    for partition in range(PARTITIONS):
        await until_rows(on.grape, "orders.copy", before + each, partition)


def assert_same(on: Link, topic: str = "orders", count: int = PARTITIONS) -> None:
    source, copy = ([(name, number) for number in range(count)] for name in (topic, f"{topic}.copy"))
    rows = read_partitions(on.orange, source), read_partitions(on.grape, copy)
    assert list(rows[0].values()) == list(rows[1].values())


async def changed(on: Link, lanes: int) -> None:
    async with on.running("lanes", "--set", str(lanes), "--yes") as command:
        await command.wait_for_line(f"to {lanes}, and moved ", PATIENCE)
        assert await command.wait(PATIENCE) == 0


@pytest.mark.release  # held by tests/real/commands/test_lanes.py and tests/unit/driver/test_jobs.py
async def test_a_running_replicator_goes_on_with_another_number_of_lanes_by_itself(orders: Link) -> None:
    async with orders.tunnel(), orders.running("replicate", TASKS="2") as replicator:
        await produced(orders, 100, 0)
        producing = asyncio.create_task(asyncio.to_thread(orders.produce, "orders", 100_000, 1), name="producing")
        for lanes in (5, 1, 3):
            await changed(orders, lanes)
            await replicator.wait_for_line(f"lanes changed lanes={lanes}", PATIENCE)
        await producing
        await until_rows(orders.grape, "orders.copy", 100_100, 1)
        await asyncio.to_thread(orders.produce, "orders", 100, 0)
        await until_rows(orders.grape, "orders.copy", 200, 0)
    assert_same(orders)
