"""The replicator on a Spark cluster of two hosts, and the ends that each part may meet: nothing is lost or doubled."""

import asyncio
import contextlib
import ipaddress
import json
import os
import shutil
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

import appliance
from testbed.process import OwnedProcess
from tests.support.disclosure import disclosing
from tests.support.link import Link, command_lines, faults, lines, link, shown_by
from tests.support.patience import PATIENCE
from tests.support.processes import peers
from tests.support.rows import read_rows
from tests.support.spark_cluster import ENDPOINTS, SparkCluster, settings, spark_cluster, start_worker

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARTITIONS = 4
FIRST, SECOND = ENDPOINTS
ANY_ENDPOINT = ipaddress.IPv4Network("127.64.0.0/10")
LONG = 90.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Link]:
    async with link(tmp_path_factory.mktemp("link")) as made, made.running("source") as source:
        await source.wait_for_line("ready", PATIENCE)
        yield made


@pytest.fixture
def orders(shared: Link) -> Link:
    """The link with an empty past and one source topic, ``orders``."""
    shared.clear()
    shared.make_topic(shared.orange, "orders", PARTITIONS)
    return shared


@contextlib.asynccontextmanager
async def copying(on: Link, **others: str) -> AsyncIterator[tuple[SparkCluster, OwnedProcess]]:
    """A cluster, and a replicator with these ``others`` among its settings that has copied by both of its workers."""
    variables = settings() | others
    async with spark_cluster(on, variables) as cluster, on.running("destination") as gateway:
        await gateway.wait_for_line("ready", PATIENCE)
        async with on.running("replicate", **variables) as replicator:
            async with asyncio.timeout(LONG):
                while not all(cluster.python_workers(host) for host in ENDPOINTS):
                    await asyncio.sleep(0.1)
            await all_copied(on)
            yield cluster, replicator


async def all_copied(on: Link, count: int = 50) -> None:
    """More records in each partition, and then every copy is what its source is."""
    for partition in range(PARTITIONS):
        on.produce("orders", count, partition)
    for partition in range(PARTITIONS):
        wanted = await asyncio.to_thread(read_rows, on.orange, "orders", partition)
        async with asyncio.timeout(LONG):
            while (copied := await asyncio.to_thread(read_rows, on.grape, "orders.copy", partition)) != wanted:
                assert copied == wanted[: len(copied)]
                await asyncio.sleep(0.2)


def slices(replicator: OwnedProcess) -> int:
    """How many slices that copied something have ended."""
    return sum("slice copied" in line for line in lines(replicator))


async def gone(processes: list[psutil.Process]) -> bool:
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=PATIENCE)
    return not alive


async def owners(replicator: OwnedProcess) -> dict[int, object]:
    """Who has each lane and since when, as the replicator's console sees it in a look that begins after this call."""
    snapshot = await asyncio.to_thread(status, replicator)
    async with asyncio.timeout(LONG):
        for _ in range(2):  # the first look that ends may have begun before
            before = snapshot["at"]
            while snapshot["at"] == before:
                await asyncio.sleep(0.1)
                snapshot = await asyncio.to_thread(status, replicator)
    return {lane["lane"]: lane["owner"] for lane in snapshot["lanes"]}


def status(replicator: OwnedProcess) -> dict[str, Any]:
    """The newest snapshot of the replicator's console, which makes one every few seconds."""
    (address,) = (line.rpartition("address=")[2] for line in lines(replicator) if "status: listening" in line)
    with urllib.request.urlopen(f"http://{address}/status", timeout=PATIENCE) as answer:
        snapshot: dict[str, Any] = json.load(answer)
        return snapshot


async def test_each_host_copies_through_the_gateway_beside_it_and_keeps_its_lanes(orders: Link) -> None:
    async with copying(orders, SLICE_SECONDS="2") as (cluster, replicator):
        held, runners = await owners(replicator), [cluster.python_workers(host) for host in ENDPOINTS]
        before = faults(replicator)
        for _ in range(3):
            ended = slices(replicator)
            await all_copied(orders)
            while slices(replicator) <= ended:
                await asyncio.sleep(0.1)
        assert await owners(replicator) == held
        assert [cluster.python_workers(host) for host in ENDPOINTS] == runners
        assert faults(replicator) == before
        for host, network in ENDPOINTS.items():
            met = {address for address in peers(cluster.python_workers(host)) if address in ANY_ENDPOINT}
            assert met
            assert met <= set(ipaddress.IPv4Network(network))


async def test_secrets_are_on_no_command_line_and_in_no_file_that_others_read(orders: Link) -> None:
    async with copying(orders) as (cluster, replicator):
        parts = (cluster.master, *cluster.workers.values(), replicator)
        shown = "".join(map(shown_by, parts))
        assert not [secret for secret in orders.secrets if secret in shown]
        secret = cluster.settings["SPARK_AUTHENTICATE_SECRET"]
        assert not [line for part in parts for line in command_lines(part) if secret in line]
        assert not disclosing(orders.directory, [secret])


async def test_an_executor_that_is_killed_is_replaced(orders: Link) -> None:
    async with copying(orders) as (cluster, _):
        executor, runners = cluster.executor(FIRST), cluster.python_workers(FIRST)
        executor.kill()
        assert await gone(runners)
        await all_copied(orders)
        assert cluster.executor(FIRST) != executor


async def test_the_lanes_of_a_worker_that_is_killed_go_to_the_other_and_come_back_with_it(orders: Link) -> None:
    async with copying(orders) as (cluster, replicator), AsyncExitStack() as parts:
        started = cluster.started_by(FIRST)
        psutil.Process(cluster.workers[FIRST].pid).kill()
        assert await gone(started)
        await replicator.wait_for_line("cores for 1 of TASKS=2", LONG)
        await all_copied(orders)
        await start_worker(orders, parts, FIRST, **cluster.settings, **cluster.own[FIRST])
        await replicator.wait_for_line("well again.*executors", LONG)
        await all_copied(orders)


async def test_copying_goes_on_without_the_master(orders: Link) -> None:
    async with copying(orders) as (cluster, _):
        await cluster.master.kill()
        await all_copied(orders)


async def test_executors_end_with_a_killed_replicator(orders: Link) -> None:
    async with copying(orders) as (cluster, replicator):
        running = cluster.executors()
        await replicator.kill()
        assert await gone(running)


async def test_the_lanes_of_a_host_that_falls_silent_are_taken_and_it_copies_nothing_twice(orders: Link) -> None:
    async with copying(orders) as (cluster, _):
        silent = [psutil.Process(cluster.workers[FIRST].pid), *cluster.started_by(FIRST)]
        for process in silent:
            process.suspend()
        await all_copied(orders)
        for process in silent:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()
        await all_copied(orders)


async def test_case_6_the_lanes_of_an_executor_that_falls_silent_are_taken_before_the_slices_time_is_over(
    orders: Link,
) -> None:
    async with copying(orders) as (cluster, _):
        executor = cluster.executor(FIRST)
        silent = [executor, *executor.children(recursive=True)]
        for process in silent:
            process.suspend()
        try:
            await all_copied(orders)
        finally:
            for process in silent:
                with contextlib.suppress(psutil.NoSuchProcess):  # its Spark worker has killed it meanwhile
                    process.resume()


async def test_a_worker_of_another_release_is_named(orders: Link, tmp_path: Path) -> None:
    other = shutil.copytree(Path(appliance.__file__).parent, tmp_path / "appliance")
    (other / "version.py").write_text('VERSION = "0.0.1"\n')
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}
    variables = settings()
    async with spark_cluster(orders, variables, environment), orders.running("destination") as gateway:
        await gateway.wait_for_line("ready", PATIENCE)
        async with orders.running("replicate", **variables) as replicator:
            await replicator.wait_for_line(r"a slice failed: .* has release 0\.0\.1 of the appliance", LONG)


async def test_a_worker_that_has_another_secret_gets_nothing_to_do(orders: Link) -> None:
    variables, other = settings(), settings()["SPARK_AUTHENTICATE_SECRET"]
    async with AsyncExitStack() as parts, orders.running("destination") as gateway:
        await parts.enter_async_context(orders.running("spark", "master", **variables))
        await start_worker(orders, parts, FIRST, **{**variables, "SPARK_AUTHENTICATE_SECRET": other})
        await gateway.wait_for_line("ready", PATIENCE)
        async with orders.running("replicate", **variables) as replicator:
            await replicator.wait_for_line("has no core for us", LONG)
