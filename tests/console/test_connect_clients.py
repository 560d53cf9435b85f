"""The link in clients of Kafka Connect that others wrote: AKHQ's, in Java, and one in Python."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kafka_connect import KafkaConnect
from requests.exceptions import HTTPError

from testbed.jars import JarSet, classpath, java
from tests.console.conftest import TOKEN, Center, outrun_by_retention
from tests.support.java_programs import compiled
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]  # its JSON: tests/real/console

NAME = "replicator-orange"


@cache
def client() -> str:
    """The class path of the client that AKHQ has."""
    return classpath(JarSet((("org.sourcelab", "kafka-connect-client", "4.0.4"),), "connect-client"))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "programs" / "ConnectCalls.java"
    return compiled(source, client(), tmp_path_factory.mktemp("program"))


async def called(program: Path, center: Center, command: str, token: str = TOKEN) -> dict[str, list[list[str]]]:
    """The answers to the Java client by their names; the command is empty to read only."""
    jars = os.pathsep.join([client(), str(program)])
    arguments = [f"http://{center.address}", token, NAME, command]
    line = [java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", jars, "ConnectCalls", *arguments]
    run = await asyncio.to_thread(subprocess.run, line, capture_output=True, text=True, timeout=PATIENCE)
    said: dict[str, list[list[str]]] = {}
    for name, *parts in (line.split("\t") for line in run.stdout.splitlines()):
        said.setdefault(name, []).append(parts)
    return said | ({"failed": [[run.stderr]]} if run.returncode else {})


async def until(ask: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    """Ask until the answer is as wanted."""
    async with asyncio.timeout(PATIENCE):
        while not wanted(found := await asyncio.to_thread(ask)):
            await asyncio.sleep(0.5)
    return found


async def test_akhqs_client_reads_the_link_and_pauses_and_resumes_it(program: Path, center: Center) -> None:
    said = await called(program, center, "pause")
    assert said["cluster"] == [["grape"]]
    assert said["connectors"] == said["expanded"] == [[f"[{NAME}]"]]
    assert said["topics"] == [["[orders.copy]"]]
    assert said["settings"] == [["[]"]]
    assert (said["type"], said["secret"], said["plugin"]) == (
        [["source"]],
        [["********"]],
        [["kafka-cloud-replicator"]],
    )
    assert (said["task"], said["state"], said["task state"]) == ([["0"]], [["RUNNING"]], [["RUNNING", "null"]])
    assert said["done"] == [["true"]]
    await center.until("inactive")
    said = await called(program, center, "resume")
    assert said["state"] == [["PAUSED"]]
    await center.until("copied")


async def test_without_the_token_a_client_reads_and_changes_nothing(program: Path, center: Center) -> None:
    said = await called(program, center, "pause", token="wrong")
    assert said["state"] == [["RUNNING"]]
    assert "done" not in said
    assert "401" in said["failed"][0][0] or "CONSOLE_TOKEN" in said["failed"][0][0]
    python = KafkaConnect(f"http://{center.address}")
    with pytest.raises(HTTPError, match="401"):
        await asyncio.to_thread(python.pause_connector, NAME)
    assert python.get_connector_status(NAME)["connector"]["state"] == "RUNNING"


async def test_a_client_in_python_sees_a_failed_task_with_its_trace_and_restarts_it(center: Center) -> None:
    python = KafkaConnect(f"http://{center.address}", auth=f"anybody:{TOKEN}")
    assert await asyncio.to_thread(python.list_connectors) == [NAME]
    states = await asyncio.to_thread(python.list_connectors, expand="status")
    assert states[NAME]["status"]["connector"]["state"] == "RUNNING"
    known = await asyncio.to_thread(python.list_connectors, expand="info")
    assert known[NAME]["info"]["config"]["SOURCE_API_SECRET"] == "********"
    assert python.list_connector_plugins()[0]["type"] == "source"
    await center.replicator.kill()
    await asyncio.to_thread(outrun_by_retention, center.link)
    async with center.link.running("replicate", CONSOLE_LISTEN=center.replicator_page):

        def task() -> Any:
            return python.get_connector_task_status(NAME, 0)

        failed = await until(task, lambda found: found["state"] == "FAILED")
        assert "orders-0: stopped since" in failed["trace"]
        with pytest.raises(HTTPError, match="405"):
            await asyncio.to_thread(python.delete_connector, NAME)
        await asyncio.to_thread(python.restart_connector_task, NAME, 0)
        again = await until(task, lambda found: found["state"] == "FAILED" and found["trace"] != "")
        assert "orders-0" in again["trace"]
