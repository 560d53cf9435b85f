"""Spark's page and its event log, as people who know Spark look at an application."""

import asyncio
import contextlib
import json
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.spark.spark_jvm import LOOPBACK, spark_home
from bench.lib.running import free_port
from testbed.process import OwnedProcess
from tests.support.commands import command, command_line, settings_file
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs
from tests.support.records import produce
from tests.support.rows import until_rows
from tests.support.spark_stranger import listeners

pytestmark = pytest.mark.asyncio(loop_scope="session")

DRIVER = "org.apache.spark.deploy.SparkSubmit"
HISTORY_SERVER = "org.apache.spark.deploy.history.HistoryServer"


@contextlib.asynccontextmanager
async def copying(
    pair: Pair, directory: Path, *options: str, topic: str = "orders", **changed: str
) -> AsyncIterator[OwnedProcess]:
    """A replicator that has copied one topic."""
    orders = pair.topic(topic)
    produce(pair.producer(), orders, 10)
    env_file = settings_file(pair, directory, TASKS="2", LANES="4", CONSOLE_LISTEN="127.0.0.1:0", **changed)
    environment = {**os.environ, "TMPDIR": str(directory)}
    line = command_line("replicate", env_file, *options)
    replicator = await OwnedProcess.start("replicate", line, directory / "replicate.log", environment)
    try:
        await until_rows(pair.grape, f"{orders}.copy", 10)
        yield replicator
        await replicator.stop()
    finally:
        await replicator.kill()


async def asked(address: str, path: str) -> Any:
    """The JSON answer of Spark's REST API."""

    def ask() -> Any:
        with urllib.request.urlopen(f"{address}/api/v1/{path}", timeout=PATIENCE) as answer:
            return json.load(answer)

    return await asyncio.to_thread(ask)


async def test_the_page_of_spark_names_the_link_and_its_lanes_on_loopback_alone_and_hides_what_is_secret(
    pair: Pair, tmp_path: Path
) -> None:
    name = f"replicator-{pair.tag}"
    passed = "--conf", "spark.executor.heartbeatInterval=7s"
    async with copying(pair, tmp_path, *passed, SPARK_UI="yes", SPARK_UI_PORT="0") as replicator:
        address = await replicator.wait_for_address("Spark's page", PATIENCE)
        (application,) = await asked(address, "applications")
        assert application["name"] == name
        at = f"applications/{application['id']}"
        (job,) = await asked(address, f"{at}/jobs")
        assert (job["jobGroup"], job["name"], job["status"]) == (name, name, "RUNNING")
        assert job["description"] == f"{name}: 4 lanes in 2 tasks"
        async with asyncio.timeout(PATIENCE):
            while (await asked(address, f"{at}/stages"))[0]["numActiveTasks"] < 2:
                await asyncio.sleep(0.1)
        (stage,) = await asked(address, f"{at}/stages")
        assert (stage["name"], stage["description"], stage["numActiveTasks"]) == (name, job["description"], 2)
        properties = dict((await asked(address, f"{at}/environment"))["sparkProperties"])
        assert properties["spark.executor.heartbeatInterval"] == "7s"
        (java,) = (process for process in family(replicator.pid) if runs(process, DRIVER))
        assert {host for host, _ in listeners(java)} == {LOOPBACK}
        for path in ("jobs/job/kill/?id=0", "stages/stage/kill/?id=0"):
            with contextlib.suppress(urllib.error.HTTPError):
                await asyncio.to_thread(urllib.request.urlopen, f"{address}/{path}")
        assert (await asked(address, f"{at}/jobs"))[0]["status"] == "RUNNING"


@pytest.mark.release  # the page of a running Spark shows the same
async def test_the_history_server_of_spark_reads_the_event_log_in_which_no_secret_stands(
    pair: Pair, tmp_path: Path
) -> None:
    folder, name = tmp_path / "events" / "made", f"replicator-{pair.tag}"
    secret, legible = secrets.token_urlsafe(33), ("--conf", "spark.eventLog.compress=false")
    async with copying(pair, tmp_path, *legible, SPARK_EVENT_LOG_DIR=str(folder), SPARK_AUTHENTICATE_SECRET=secret):
        pass
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert name.encode() in written
    assert secret.encode() not in written
    port = free_port(LOOPBACK)
    conf = tmp_path / "history.conf"
    conf.write_text(f"spark.history.fs.logDirectory={folder.as_uri()}\nspark.history.ui.port={port}\n")
    line = [f"{spark_home()}/bin/spark-class", HISTORY_SERVER, "--properties-file", str(conf)]
    environment = {**os.environ, "SPARK_LOCAL_IP": LOOPBACK, "SPARK_NO_DAEMONIZE": "1"}
    server = await OwnedProcess.start("history server", line, tmp_path / "history.log", environment)
    try:
        address, applications = f"http://{LOOPBACK}:{port}", []

        async def listed() -> bool:
            with contextlib.suppress(OSError):  # it listens before it answers
                applications[:] = await asked(address, "applications")
            return bool(applications)

        await server.wait_until(listed, PATIENCE, "list the application")
        assert [each["name"] for each in applications] == [name]
        assert applications[0]["attempts"][0]["completed"]
        (job,) = await asked(address, f"applications/{applications[0]['id']}/jobs")
        assert job["description"] == f"{name}: 4 lanes in 2 tasks"
    finally:
        await server.kill()


async def test_settings_that_are_secret_or_the_replicators_own_are_not_passed_on(pair: Pair, tmp_path: Path) -> None:
    options = ["--conf", "spark.hadoop.fs.s3a.secret.key=hush", "--conf", "spark.speculation=true"]
    refused = await command("replicate", settings_file(pair, tmp_path), *options)
    assert refused.returncode == 2
    first, second = refused.stderr.splitlines()
    assert first.startswith("appliance replicate: --conf spark.hadoop.fs.s3a.secret.key: a secret is never passed on")
    assert "hush" not in refused.stderr
    assert second == ("appliance replicate: --conf spark.speculation: a second try of a task would fence the first")
