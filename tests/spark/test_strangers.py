"""Strangers at the ports that Spark opens: they are refused, and what is copied goes on."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from socket import create_connection
from typing import TypeVar

import psutil
import pytest
import pytest_asyncio

from appliance.replicator.spark.py4j_gateway import closed_gateway
from appliance.replicator.spark.spark_jvm import spark_jvm
from bench.cases.spark import on_a_cluster
from bench.lib import clusters
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.our_replicator import our_replicator
from tests.support.engine import ENGINE, Pair
from tests.support.patience import PATIENCE
from tests.support.processes import runs
from tests.support.records import produce
from tests.support.rows import read_rows
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
DAEMON = "appliance.replicator.spark.daemon"
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
CALL = b"c\nz:java.lang.System\nexit\ni1\ne\n"
FRAME_OF_2_GB = (2**31 - 100).to_bytes(8, "big") + b"\3"
HEAP_AND_DIRECT_MEMORY = (512 + 128) * 1024 * 1024

Value = TypeVar("Value")
Address = tuple[str, int]


@pytest_asyncio.fixture(params=[our_replicator, on_a_cluster], ids=["local", "standalone"], loop_scope="session")
async def copying(request: pytest.FixtureRequest, pair: Pair, tmp_path: Path) -> AsyncIterator[Copying]:
    """A replicator that has copied one record by its one task for each of two cores, in each mode in turn."""
    topic = pair.topic("strangers")
    produce(pair.producer(), topic, 1)
    both = clusters.Pair(pair.orange, pair.grape, tmp_path)
    async with request.param(both, Load(0, topic), "0", {"TASKS": "2"}) as made:
        await copied(pair, made, 1)
        yield made


async def copied(pair: Pair, copying: Copying, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(await asyncio.to_thread(read_rows, pair.grape, copying.topic, 0)) < count:
            await asyncio.sleep(0.1)


def processes() -> Iterator[tuple[psutil.Process, str]]:
    """Those of Spark that this test has started, each with what it is."""
    for process in psutil.Process().children(recursive=True):
        for part in (*PARTS, DAEMON):
            if runs(process, part):
                yield process, part


def spoken(wanted: bytes) -> list[Address]:
    """The listeners of Spark's Java machines that answer a greeting so."""
    everywhere = {address for process, part in processes() if part != DAEMON for address in listeners(process)}
    return sorted(address for address in everywhere if greeted(address)[: len(wanted) or None] == wanted)


async def harmless(pair: Pair, copying: Copying, stranger: Callable[[], Value]) -> Value:
    """What a stranger does in a thread, after which more is copied by the same processes, and the log is not full."""
    before = {(process.pid, part) for process, part in processes() if part in PARTS}
    done = await asyncio.to_thread(stranger)
    topic, _, _ = copying.topic.rpartition(".")
    produce(pair.producer(), topic, 1)
    await copied(pair, copying, 2)
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
    # Before, the driver gave away the pickled tasks, and in them the token of the seats.
    def stranger() -> None:
        for port in spoken(b""):
            for number in range(4):
                assert asked(port, block_request(f"broadcast_{number}_piece0")).refused

    await harmless(pair, copying, stranger)


async def test_nothing_is_served_to_whoever_asks_for_files_or_opened_blocks(pair: Pair, copying: Copying) -> None:
    # Spark answers these without authentication: it has to have nothing to give.
    def stranger() -> None:
        for port in spoken(b""):
            for stream in ("/files/setenv.sh", "/jars/appliance.jar", "/archives/venv.zip", "1_0"):
                assert asked(port, stream_request(stream)).kind == STREAM_FAILURE
            assert asked(port, chunk_request(1)).kind == CHUNK_FETCH_FAILURE

    await harmless(pair, copying, stranger)


async def test_no_stranger_reaches_the_gateway_of_pyspark_once_spark_runs(pair: Pair, copying: Copying) -> None:
    # It gives whoever connects a thread, for ever: some hundreds of strangers had left Java none, and all hung.
    assert await harmless(pair, copying, lambda: spoken(b"!")) == []


async def test_strangers_who_reach_the_gateway_before_us_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PIN_THREAD", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        monkeypatch.setenv(name, "")
    async with spark_jvm(ENGINE, "link", tmp_path / "setenv.sh", tmp_path) as machine:
        port, secret = await machine.gateway()
        (java,) = (process for process, part in processes() if part == DRIVER)
        assert ("127.0.0.1", port) in listeners(java)
        assert b"Authentication error" in await asyncio.to_thread(said, ("127.0.0.1", port), CALL)
        with contextlib.ExitStack() as held:
            strangers = [held.enter_context(create_connection(("127.0.0.1", port), PATIENCE)) for _ in range(50)]
            gateway = await asyncio.to_thread(closed_gateway, port, secret)
            for stranger in strangers:
                with contextlib.suppress(ConnectionResetError):
                    assert await asyncio.to_thread(stranger.recv, 1) == b""
        assert listeners(java) == set()
        clock = gateway.jvm.java.lang.System.currentTimeMillis
        assert all(await asyncio.gather(*(asyncio.to_thread(clock) for _ in range(3))))
        gateway._gateway_client.is_connected = False


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


async def test_what_a_stranger_pours_into_a_port_ends_nothing(pair: Pair, copying: Copying) -> None:
    # Java had grown by a gigabyte, beyond the container's limit.
    java = [process for process, part in processes() if part == DRIVER]
    assert len(java) == 1
    before = java[0].memory_info().rss

    def stranger() -> int:
        for port in sorted(listeners(java[0])):
            poured(port, FRAME_OF_2_GB)
        return java[0].memory_info().rss

    assert await harmless(pair, copying, stranger) - before < HEAP_AND_DIRECT_MEMORY
