"""Parts of a Spark cluster that end for good, and parts that do not belong to it."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

import appliance
from tests.support.link import Link
from tests.support.patience import PATIENCE
from tests.support.spark_cluster import (
    ENDPOINTS,
    LONG,
    PARTITIONS,
    all_copied,
    copying,
    gone,
    link_with_source,
    settings,
    spark_cluster,
    start_worker,
)

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.release]

FIRST, _ = ENDPOINTS


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Link]:
    async with link_with_source(tmp_path_factory.mktemp("link")) as made:
        yield made


@pytest.fixture
def orders(shared: Link) -> Link:
    """A new link with one source topic, ``orders``."""
    shared.clear()
    shared.make_topic(shared.orange, "orders", PARTITIONS)
    return shared


async def test_copying_goes_on_without_the_master_and_executors_end_with_a_killed_replicator(orders: Link) -> None:
    async with copying(orders) as made:
        await made.cluster.master.kill()
        await all_copied(orders)
        running = made.cluster.executors()
        await made.replicator.kill()
        assert await gone(running)


async def test_a_worker_of_another_release_is_named(orders: Link, tmp_path: Path) -> None:
    other = shutil.copytree(Path(appliance.__file__).parent, tmp_path / "appliance")
    (other / "version.py").write_text('VERSION = "0.0.1"\n')
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}
    variables = settings() | {"TASKS": "1"}
    async with spark_cluster(orders, variables, environment, [FIRST]), orders.running("destination") as gateway:
        await gateway.wait_for_line("ready", PATIENCE)
        async with orders.running("replicate", **variables) as replicator:
            await replicator.wait_for_line(r"a Spark job failed: .* has release 0\.0\.1 of the appliance", LONG)


async def test_a_worker_that_has_another_secret_gets_nothing_to_do(orders: Link) -> None:
    variables, other = settings(), settings()["SPARK_AUTHENTICATE_SECRET"]
    async with AsyncExitStack() as parts, orders.running("destination") as gateway:
        await parts.enter_async_context(orders.running("spark", "master", **variables))
        await start_worker(orders, parts, FIRST, **{**variables, "SPARK_AUTHENTICATE_SECRET": other})
        await gateway.wait_for_line("ready", PATIENCE)
        async with orders.running("replicate", **variables) as replicator:
            await replicator.wait_for_line("has no core for us", LONG)
