"""SQL in flight on a Spark cluster of two hosts: exactly once, in order, whichever host ends in between."""

import contextlib
import json
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from bench.lib.running import OWN_ADDRESS, free_port
from testbed.process import OwnedProcess
from tests.spark.test_transform import MASKED, masked, partitions_of, produce
from tests.support.commands import command, command_line, settings_file
from tests.support.engine import Pair
from tests.support.processes import family, suspended
from tests.support.rows import read_rows, until_rows
from tests.support.spark_cluster import ENDPOINTS, LONG, PARTITIONS

pytestmark = pytest.mark.asyncio(loop_scope="session")

FIRST, SECOND = ENDPOINTS


@dataclass(slots=True)
class Hosts:
    """A link's settings, and the Spark workers of both hosts; ``of_hosts`` are the settings of those."""

    directory: Path
    env_file: Path
    of_hosts: Path
    parts: AsyncExitStack
    workers: dict[str, OwnedProcess] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of all parts: what a killed one leaves is in the test's directory."""
        return {**os.environ, "TMPDIR": str(self.directory)}

    async def start(self, host: str, cores: int) -> None:
        """Start the worker of a host."""
        options = "worker", "--cores", str(cores), "--host", host
        self.workers[host] = await self.start_part(f"{host}-{cores}", *options)

    async def start_part(self, name: str, *options: str) -> OwnedProcess:
        """Start a part of the Spark cluster."""
        line = command_line("spark", self.of_hosts, *options)
        process = await OwnedProcess.start(name, line, self.directory / f"{name}.log", self.environment)
        self.parts.push_async_callback(process.kill)
        return process

    def processes(self, host: str) -> list[psutil.Process]:
        """All processes of a host."""
        return family(self.workers[host].pid)


@contextlib.asynccontextmanager
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
        hosts = Hosts(directory, env_file, of_hosts, parts)
        await hosts.start_part("master", "master")
        for host in ENDPOINTS:
            await hosts.start(host, 2)
        yield hosts


@contextlib.asynccontextmanager
async def replicating(hosts: Hosts) -> AsyncIterator[OwnedProcess]:
    """The replicator of the link."""
    line = command_line("replicate", hosts.env_file)
    replicator = await OwnedProcess.start("replicate", line, hosts.directory / "replicate.log", hosts.environment)
    try:
        yield replicator
    finally:
        await replicator.kill()


async def all_masked(pair: Pair, topic: str, numbers: range) -> None:
    """Produce records to each partition, and require that every copy is what the statement makes of its source."""
    for partition in range(PARTITIONS):
        produce(pair, topic, numbers, partition)
    for partition in range(PARTITIONS):
        copies = await until_rows(pair.grape, f"{topic}.copy", numbers.stop // 2, partition)
        assert copies == masked(read_rows(pair.orange, topic, partition))


@pytest.mark.release  # needs a Spark cluster, as test_cluster.py
async def test_records_are_masked_exactly_once_though_hosts_are_killed_and_whichever_has_the_lanes(
    pair: Pair, tmp_path: Path
) -> None:
    topic = pair.topic("orders", PARTITIONS)
    copy = f"{topic}.copy"
    async with cluster(pair, tmp_path, MASKED, LANES=str(PARTITIONS)) as hosts, replicating(hosts) as replicator:
        await all_masked(pair, topic, range(2000))
        for partition in range(PARTITIONS):
            produce(pair, topic, range(2000, 30_000), partition)
        await until_rows(pair.grape, copy, 1001, 0)
        for process in hosts.processes(FIRST):
            process.kill()
        await replicator.wait_for_line(r"cores for 1 of TASKS=2: .*; with SQL in flight each task needs 2", LONG)
        for partition in range(PARTITIONS):
            copies = await until_rows(pair.grape, copy, 15_000, partition)
            assert copies == masked(read_rows(pair.orange, topic, partition))
        for process in hosts.processes(SECOND):
            process.kill()
        await hosts.start(FIRST, 1)
        await replicator.wait_for_line(r"has 1 core for us; with SQL in flight each task needs 2", LONG)
        # Now the lanes are on one host, which has no further core, and the SQL is on the other.
        await hosts.start(SECOND, 1)
        await all_masked(pair, topic, range(30_000, 32_000))
    report = json.loads((await command("status", hosts.env_file, "--json")).stdout)
    counts = [(each["copied"], each["filtered"]) for each in partitions_of(report)]
    assert counts == [(16_000, 16_000)] * PARTITIONS


@pytest.mark.release  # as the other one
async def test_the_lanes_and_the_sql_of_a_host_that_falls_silent_go_on_elsewhere_and_it_copies_nothing_twice(
    pair: Pair, tmp_path: Path
) -> None:
    topic = pair.topic("orders", PARTITIONS)
    async with cluster(pair, tmp_path, MASKED, LANES=str(PARTITIONS)) as hosts, replicating(hosts):
        await all_masked(pair, topic, range(2000))
        with suspended(*hosts.processes(FIRST)):
            await all_masked(pair, topic, range(2000, 4000))
        await all_masked(pair, topic, range(4000, 6000))
