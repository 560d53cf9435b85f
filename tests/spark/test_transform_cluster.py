"""SQL in flight on a Spark cluster of two hosts: exactly once, in order, whichever host ends in between."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from bench.lib.running import OWN_ADDRESS, free_port
from testbed.process import OwnedProcess
from tests.spark.test_transform import MASKED, masked, partitions_of, produce
from tests.support.commands import command, command_line, settings_file
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs
from tests.support.rows import read_rows, until_rows
from tests.support.spark_cluster import DAEMON, ENDPOINTS, EXECUTOR

pytestmark = pytest.mark.asyncio(loop_scope="session")

FIRST, SECOND = ENDPOINTS


@dataclass(slots=True)
class Hosts:
    """A link's settings, and the Spark workers of both hosts, each with two cores."""

    directory: Path
    env_file: Path
    workers: dict[str, OwnedProcess]

    def workers_of(self, host: str) -> list[psutil.Process]:
        """The Python processes of a host's tasks."""
        daemons = [process for process in family(self.workers[host].pid) if runs(process, DAEMON)]
        return [worker for daemon in daemons for worker in daemon.children()]


@asynccontextmanager
async def cluster(pair: Pair, directory: Path, statement: str, **changed: str) -> AsyncIterator[Hosts]:
    """A master and two workers, whose settings do not name the statement."""
    master = f"spark://{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}"
    common = {"SPARK_MASTER": master, "SPARK_AUTHENTICATE_SECRET": secrets.token_urlsafe(33), "TASKS": "2"} | changed
    for name in ("replicator", "host"):
        (directory / name).mkdir()
    file = directory / "transform.sql"
    file.write_text(statement)
    own = {"REPLICA_TRANSFORM_SQL_FILE": str(file), "CONSOLE_LISTEN": "127.0.0.1:0"}
    env_file = settings_file(pair, directory / "replicator", **common, **own)
    of_hosts = settings_file(pair, directory / "host", **common)
    async with AsyncExitStack() as parts:

        async def start(name: str, *options: str) -> OwnedProcess:
            line = command_line("spark", of_hosts, *options)
            process = await OwnedProcess.start(name, line, directory / f"{name}.log", os.environ)
            parts.push_async_callback(process.kill)
            return process

        await start("master", "master")
        workers = {host: await start(host, "worker", "--cores", "2", "--host", host) for host in ENDPOINTS}
        yield Hosts(directory, env_file, workers)


@asynccontextmanager
async def replicating(hosts: Hosts) -> AsyncIterator[OwnedProcess]:
    line = command_line("replicate", hosts.env_file)
    replicator = await OwnedProcess.start("replicate", line, hosts.directory / "replicate.log", os.environ)
    try:
        yield replicator
    finally:
        await replicator.kill()


async def test_records_are_masked_exactly_once_by_two_hosts_though_one_is_killed(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic("orders", 4)
    copy = f"{topic}.copy"
    async with cluster(pair, tmp_path, MASKED, LANES="4") as hosts, replicating(hosts):
        for partition in range(4):
            produce(pair, topic, range(2000), partition)
        for partition in range(4):
            await until_rows(pair.grape, copy, 1000, partition)
        for partition in range(4):
            assert read_rows(pair.grape, copy, partition) == masked(read_rows(pair.orange, topic, partition))
