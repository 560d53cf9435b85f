"""The replicator on a Spark cluster of two hosts survives faults without loss or duplicates."""

import asyncio
import ipaddress
import json
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest
import pytest_asyncio

from testbed.process import OwnedProcess
from tests.support.disclosure import disclosing
from tests.support.link import command_lines, faults, lines, shown_by
from tests.support.patience import PATIENCE
from tests.support.processes import peers, suspended
from tests.support.rows import until_rows
from tests.support.spark_cluster import (
    ENDPOINTS,
    LONG,
    PARTITIONS,
    Copying,
    all_copied,
    copying,
    gone,
    link_with_source,
    start_worker,
)

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.release]

FIRST, SECOND = ENDPOINTS
ANY_ENDPOINT = ipaddress.IPv4Network("127.64.0.0/10")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Copying]:
    """One cluster for all tests, which let it recover by itself."""
    async with link_with_source(tmp_path_factory.mktemp("link")) as link:
        link.make_topic(link.orange, "orders", PARTITIONS)
        async with copying(link) as made:
            yield made


@pytest_asyncio.fixture(loop_scope="module")
async def whole(shared: Copying) -> Copying:
    """The cluster, once both hosts copy."""
    await shared.until_whole()
    return shared


async def owners(replicator: OwnedProcess) -> dict[int, object]:
    """The owner of each lane and the time of its start, from a snapshot of the console that begins after this call."""
    snapshot = await asyncio.to_thread(status, replicator)
    async with asyncio.timeout(LONG):
        for _ in range(2):  # the next snapshot may have begun before
            before = snapshot["at"]
            while snapshot["at"] == before:
                await asyncio.sleep(0.1)
                snapshot = await asyncio.to_thread(status, replicator)
    return {lane["lane"]: lane["owner"] for lane in snapshot["lanes"]}


def status(replicator: OwnedProcess) -> dict[str, Any]:
    """The newest snapshot of the replicator's console, which takes one every few seconds."""
    (address,) = (line.rpartition("address=")[2] for line in lines(replicator) if "status: listening" in line)
    with urllib.request.urlopen(f"http://{address}/status", timeout=PATIENCE) as answer:
        snapshot: dict[str, Any] = json.load(answer)
        return snapshot


async def test_each_host_copies_through_the_gateway_beside_it_and_keeps_its_lanes(whole: Copying) -> None:
    link, cluster, replicator = whole.link, whole.cluster, whole.replicator
    held, runners = await owners(replicator), [cluster.python_workers(host) for host in ENDPOINTS]
    before = faults(replicator)
    for number in range(3):
        link.make_topic(link.orange, f"orders-{number}")
        link.produce(f"orders-{number}", 5)
        await all_copied(link)
        await until_rows(link.grape, f"orders-{number}.copy", 5)
    assert await owners(replicator) == held
    assert [cluster.python_workers(host) for host in ENDPOINTS] == runners
    assert faults(replicator) == before
    for host, network in ENDPOINTS.items():
        met = {address for address in peers(cluster.python_workers(host)) if address in ANY_ENDPOINT}
        assert met
        assert met <= set(ipaddress.IPv4Network(network))


async def test_secrets_are_on_no_command_line_and_in_no_file_that_others_read(whole: Copying) -> None:
    parts = (whole.cluster.master, *whole.cluster.workers.values(), whole.replicator)
    shown = "".join(map(shown_by, parts))
    assert not [secret for secret in whole.link.secrets if secret in shown]
    secret = whole.cluster.settings["SPARK_AUTHENTICATE_SECRET"]
    assert not [line for part in parts for line in command_lines(part) if secret in line]
    assert not disclosing(whole.link.directory, [secret])


async def test_an_executor_that_is_killed_is_replaced(whole: Copying) -> None:
    executor, runners = whole.cluster.executor(FIRST), whole.cluster.python_workers(FIRST)
    executor.kill()
    assert await gone(runners)
    await whole.until_whole()
    assert whole.cluster.executor(FIRST) != executor


async def test_the_lanes_of_a_worker_that_is_killed_go_to_the_other_and_come_back_with_it(whole: Copying) -> None:
    cluster, missing, well = whole.cluster, "cores for 1 of TASKS=2", "well again.*executors"
    said = whole.times_said(missing), whole.times_said(well)
    started = cluster.started_by(FIRST)
    psutil.Process(cluster.workers[FIRST].pid).kill()
    assert await gone(started)
    await whole.until_said(missing, said[0])
    await all_copied(whole.link)
    own = {**cluster.settings, **cluster.own[FIRST]}
    cluster.workers[FIRST] = await start_worker(whole.link, whole.parts, FIRST, **own)
    await whole.until_said(well, said[1])
    await whole.until_whole()


async def test_the_lanes_of_a_host_that_falls_silent_are_taken_and_it_copies_nothing_twice(whole: Copying) -> None:
    with suspended(psutil.Process(whole.cluster.workers[FIRST].pid), *whole.cluster.started_by(FIRST)):
        await all_copied(whole.link)
    await all_copied(whole.link)


async def test_case_6_the_lanes_of_an_executor_that_falls_silent_are_taken_by_the_one_in_its_place(
    whole: Copying,
) -> None:
    # They waited until the slice of the job ended.
    executor = whole.cluster.executor(FIRST)
    with suspended(executor, *executor.children(recursive=True)):
        await all_copied(whole.link)
