"""Strangers at Spark's ports are refused, and copying continues."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
import pytest_asyncio

from bench.lib import clusters as bench_clusters
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.our_replicator import our_replicator
from bench.lib.spark_cluster import on_a_cluster
from testbed.cluster import Cluster
from tests.support.engine import Pair
from tests.support.processes import runs
from tests.support.records import produce
from tests.support.rows import until_rows
from tests.support.spark_stranger import (
    CHUNK_FETCH_FAILURE,
    STREAM_FAILURE,
    asked,
    block_request,
    chunk_request,
    greeted,
    listeners,
    one_way,
    poured,
    rpc,
    said,
    stream_request,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

DRIVER, MASTER = "org.apache.spark.deploy.SparkSubmit", "org.apache.spark.deploy.master.Master"
WORKER, EXECUTOR = "org.apache.spark.deploy.worker.Worker", "org.apache.spark.executor.CoarseGrainedExecutorBackend"
DAEMON = "appliance.driver.daemon"
PARTS = (DRIVER, MASTER, WORKER, EXECUTOR)
ENDPOINTS = (
    "endpoint-verifier",
    "BlockManagerMaster",
    "Master",
    "Worker",
    "CoarseGrainedScheduler",
    "HeartbeatReceiver",
)
ORDERS = (
    "GET /app/kill/?id=app-1&terminate=true",
    "POST /app/kill/?id=app-1&terminate=true",
    "POST /workers/kill/?host=x",
)
FRAME_OF_2_GB = (2**31 - 100).to_bytes(8, "big") + b"\3"
HEAP_AND_DIRECT_MEMORY = (512 + 128) * 1024 * 1024

Value = TypeVar("Value")
Address = tuple[str, int]


@pytest_asyncio.fixture(
    params=[
        pytest.param(our_replicator, id="local"),
        pytest.param(on_a_cluster, id="standalone", marks=pytest.mark.release),
    ],
    scope="module",
    loop_scope="session",
)
async def copying(
    request: pytest.FixtureRequest, clusters: tuple[Cluster, Cluster], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Copying]:
    """A replicator that has copied one record, with one task for each of two cores; once in each mode.

    All tests share it, so each shows that the stranger has not ended it.
    """
    pair = Pair(*clusters, tag=f"{os.getpid()}-strangers-{request.param.__name__}")
    topic = pair.topic("strangers")
    produce(pair.producer(), topic, 1)
    both = bench_clusters.Pair(*clusters, tmp_path_factory.mktemp("copying"))
    async with request.param(both, Load(0, topic), pair.tag, {"TASKS": "2"}) as made:
        await copied(pair, made, 1)
        yield made


async def copied(pair: Pair, copying: Copying, count: int) -> int:
    """The number of records in the copy, once there are ``count``."""
    return len(await until_rows(pair.grape, copying.topic, count))


def processes() -> Iterator[tuple[psutil.Process, str]]:
    """Spark's processes that this test has started, each with its part."""
    for process in psutil.Process().children(recursive=True):
        for part in (*PARTS, DAEMON):
            if runs(process, part):
                yield process, part


def spoken(wanted: bytes) -> list[Address]:
    """The listeners of Spark's JVMs that answer a greeting in this way."""
    everywhere = {address for process, part in processes() if part != DAEMON for address in listeners(process)}
    return sorted(address for address in everywhere if greeted(address)[: len(wanted) or None] == wanted)


async def harmless(pair: Pair, copying: Copying, stranger: Callable[[], Value]) -> Value:
    """Run an attack in a thread; then require that the same processes still copy, and that the log is not full."""
    before = {(process.pid, part) for process, part in processes() if part in PARTS}
    done = await asyncio.to_thread(stranger)
    topic, _, _ = copying.topic.rpartition(".")
    count = await copied(pair, copying, 1)
    produce(pair.producer(), topic, 1)
    await copied(pair, copying, count + 1)
    assert {(process.pid, part) for process, part in processes() if part in PARTS} == before
    assert "Unauthenticated call" not in copying.process.log_file.read_text()
    return done


async def test_an_unauthenticated_rpc_is_refused(pair: Pair, copying: Copying) -> None:
    def stranger() -> None:
        ports = spoken(b"")
        assert len(ports) >= 2
        for port in ports:
            for endpoint in ENDPOINTS:
                assert asked(port, rpc(port, endpoint)).refused
                assert asked(port, one_way(port, endpoint), rpc(port, endpoint)).refused

    await harmless(pair, copying, stranger)


async def test_an_unauthenticated_block_request_is_refused(pair: Pair, copying: Copying) -> None:
    # Before, the driver served the pickled tasks, which contain the token of the control connections.
    def stranger() -> None:
        for port in spoken(b""):
            for number in range(4):
                assert asked(port, block_request(f"broadcast_{number}_piece0")).refused

    await harmless(pair, copying, stranger)


async def test_nothing_is_served_to_whoever_asks_for_files_or_opened_blocks(pair: Pair, copying: Copying) -> None:
    # Spark answers these without authentication, so it must have nothing to serve.
    def stranger() -> None:
        for port in spoken(b""):
            for stream in ("/files/setenv.sh", "/jars/appliance.jar", "/archives/venv.zip", "1_0"):
                assert asked(port, stream_request(stream)).kind == STREAM_FAILURE
            assert asked(port, chunk_request(1)).kind == CHUNK_FETCH_FAILURE

    await harmless(pair, copying, stranger)


async def test_no_stranger_reaches_the_gateway_of_pyspark_once_spark_runs(pair: Pair, copying: Copying) -> None:
    # It gives each connection a thread for ever: before, some hundred strangers left Java no threads, and everything
    # hung.
    assert await harmless(pair, copying, lambda: spoken(b"!")) == []


async def test_pages_show_nothing_take_no_order_and_are_on_loopback_alone(pair: Pair, copying: Copying) -> None:
    def stranger() -> int:
        pages = spoken(b"HTTP")
        for host, port in pages:
            assert host == "127.0.0.1"
            for request in ("GET /", "GET /json/", "GET /metrics/master/json/", "GET /static/utils.js", *ORDERS):
                answer = said((host, port), f"{request} HTTP/1.0\r\nContent-Length: 0\r\n\r\n".encode())
                assert re.match(rb"HTTP/1.[01] (403|405) ", answer), (request, answer[:200])
        return len(pages)

    started = [part for _, part in processes() if part in (MASTER, WORKER)]
    assert await harmless(pair, copying, stranger) == len(started)


@pytest.mark.usefixtures("copying")
async def test_python_is_reached_through_files_that_its_user_alone_opens() -> None:
    daemons = [process for process, part in processes() if part == DAEMON]
    assert daemons
    for daemon in daemons:
        assert listeners(daemon) == set()
        paths = {Path(daemon.cwd(), c.laddr) for c in daemon.net_connections("unix") if c.laddr}
        assert paths
        for path in paths:
            assert any(parent.stat().st_mode & 0o077 == 0 for parent in path.parents)


async def test_bytes_that_a_stranger_pours_into_a_port_end_nothing(pair: Pair, copying: Copying) -> None:
    # Before, Java grew by a gigabyte, beyond the container's limit.
    java = [process for process, part in processes() if part == DRIVER]
    assert len(java) == 1
    before = java[0].memory_info().rss

    def stranger() -> int:
        for port in sorted(listeners(java[0])):
            poured(port, FRAME_OF_2_GB)
        return java[0].memory_info().rss

    assert await harmless(pair, copying, stranger) - before < HEAP_AND_DIRECT_MEMORY
