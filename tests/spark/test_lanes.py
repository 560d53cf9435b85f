"""Other lanes for a link whose replicator runs, with its Spark job."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator

import psutil
import pytest
import pytest_asyncio

from appliance.link.model.layout import Layout
from testbed.process import OwnedProcess
from tests.support.link import Link, link
from tests.support.patience import PATIENCE
from tests.support.processes import family
from tests.support.rows import read_partitions, until_rows

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARTITIONS = 4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Link]:
    async with link(tmp_path_factory.mktemp("link")) as made:
        yield made


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


@pytest.mark.release  # held by tests/real/engine/test_running_layout.py
async def test_four_partitions_that_carry_everything_in_one_lane_get_lanes_of_their_own_by_themselves(
    orders: Link,
) -> None:
    orders.make_topic(orders.orange, "orders.hot", 16)
    hot = [number for number in range(16) if Layout(4).lane_of("orders.hot", number) == 0]
    for number in range(16):
        count, size = (80, 100_000) if number in hot else (1, 1)
        await asyncio.to_thread(orders.produce, "orders.hot", count, number, b"x" * size)
    bounded = {"LANES": "4", "TASKS": "2", "MAX_BYTES_PER_SECOND": "1600000"}
    running = orders.running("replicate", program="tests.support.balancing_soon", **bounded)
    async with orders.tunnel(), running as replicator:
        line = await replicator.wait_for_line("lanes placed by load ", PATIENCE)
        moved = set(line.split('"')[1].split(", "))
        assert len(moved & {f"orders.hot-{number}" for number in hot}) == 3
        assert 'busiest="100% to 2' in line  # a lane with two of them would have half
        await replicator.wait_for_line("lanes changed lanes=4 layout=1", PATIENCE)
        settings = orders.directory / f"{replicator.name}.sh"
        settings.write_text(settings.read_text().replace("=1600000\n", "=0\n"))
        for number in hot:
            await until_rows(orders.grape, "orders.hot.copy", 80, number)
        await asyncio.to_thread(orders.produce, "orders.hot", 10, hot[0])
        await until_rows(orders.grape, "orders.hot.copy", 90, hot[0])
    assert_same(orders, "orders.hot", 16)


@pytest.mark.release  # held by tests/real/engine/test_lanes.py
async def test_a_replicator_that_stood_still_while_the_lanes_were_changed_writes_nothing_more(orders: Link) -> None:
    async with orders.tunnel(), orders.running("replicate", TASKS="2") as older:
        await produced(orders, 100, 0)
        with standing_still(older):
            await changed(orders, 3)
            async with orders.running("replicate", TASKS="2"):
                await produced(orders, 100, 100)
        await older.wait_for_line("this one stops, a link has one", PATIENCE)
        assert await older.wait(PATIENCE) == 1
        async with orders.running("replicate", TASKS="2"):
            await produced(orders, 100, 200)
    assert_same(orders)


@contextlib.contextmanager
def standing_still(process: OwnedProcess) -> Iterator[None]:
    """Within the block the process and its children do nothing."""
    stopped = family(process.pid)
    for each in stopped:
        each.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for each in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGCONT)
