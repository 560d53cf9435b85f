"""A Spark cluster as a user starts it: one master, and a worker on each of two hosts, which are loopback addresses."""

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.lib.running import OWN_ADDRESS, free_port
from testbed.process import OwnedProcess
from tests.support.link import Link, lines, link
from tests.support.patience import PATIENCE
from tests.support.processes import runs
from tests.support.rows import read_rows, until_rows

ENDPOINTS = {"127.0.0.2": "127.65.0.0/16", "127.0.0.3": "127.66.0.0/16"}
"""Each host, and the network from which its own gateway assigns addresses to the source's brokers."""

PARTITIONS = 4
"""The partitions of the topic ``orders``."""

LONG = 90.0
"""Timeout for Spark to notice an end and to recover, in seconds."""

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
DAEMON = "appliance.driver.daemon"


@dataclass(slots=True)
class SparkCluster:
    """A running cluster: its settings, those of each host, and its parts."""

    settings: dict[str, str]
    own: dict[str, dict[str, str]]
    master: OwnedProcess
    workers: dict[str, OwnedProcess]

    def started_by(self, host: str) -> list[psutil.Process]:
        """The descendants of the host's worker."""
        return psutil.Process(self.workers[host].pid).children(recursive=True)

    def executor(self, host: str) -> psutil.Process:
        """The JVM in which the host's worker runs our tasks."""
        (found,) = (process for process in self.started_by(host) if runs(process, EXECUTOR))
        return found

    def python_workers(self, host: str) -> list[psutil.Process]:
        """The Python processes on the host that copy: forks of a daemon."""
        daemons = [process for process in self.started_by(host) if runs(process, DAEMON)]
        return [worker for daemon in daemons for worker in daemon.children()]

    def copies_on(self, host: str) -> bool:
        """True if the host has one executor, which runs a task."""
        running = [process for process in self.started_by(host) if runs(process, EXECUTOR)]
        return len(running) == 1 and len(self.python_workers(host)) == 1

    def executors(self) -> list[psutil.Process]:
        """The executors of both hosts, and their descendants."""
        found = [self.executor(host) for host in self.workers]
        return [*found, *(process for executor in found for process in executor.children(recursive=True))]


def settings() -> dict[str, str]:
    """The settings of a Spark cluster of two tasks."""
    return {
        "SPARK_MASTER": f"spark://{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}",
        "SPARK_AUTHENTICATE_SECRET": secrets.token_urlsafe(33),
        "TASKS": "2",
    }


@contextlib.asynccontextmanager
async def spark_cluster(
    on: Link,
    variables: dict[str, str],
    environment: Mapping[str, str] = os.environ,
    hosts: Sequence[str] = tuple(ENDPOINTS),
) -> AsyncIterator[SparkCluster]:
    """A worker with one core on each host, and a gateway that only its executors query."""
    own = {
        host: {"DNS_LISTEN": f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}", "TUNNEL_ENDPOINT_NETWORK": ENDPOINTS[host]}
        for host in hosts
    }
    async with AsyncExitStack() as parts:
        master = await parts.enter_async_context(on.running("spark", "master", **variables))
        cluster = SparkCluster(variables, own, master, {})
        for host in hosts:
            gateway = await parts.enter_async_context(on.running("destination", **own[host]))
            await gateway.wait_for_line("ready", PATIENCE)
            cluster.workers[host] = await start_worker(on, parts, host, environment, **variables, **own[host])
        yield cluster


async def start_worker(
    on: Link, parts: AsyncExitStack, host: str, environment: Mapping[str, str] = os.environ, **variables: str
) -> OwnedProcess:
    """A worker with one core, which ends with ``parts``."""
    worker = await on.start("spark", environment, ["worker", "--cores", "1", "--host", host], **variables)
    parts.push_async_callback(worker.kill)
    return worker


@dataclass(frozen=True, slots=True)
class Copying:
    """A link that copies ``orders`` by both workers of a Spark cluster; ``parts`` end with it."""

    link: Link
    cluster: SparkCluster
    replicator: OwnedProcess
    parts: AsyncExitStack

    async def until_whole(self) -> None:
        """Wait until both hosts copy."""
        async with asyncio.timeout(LONG):
            while not all(map(self.cluster.copies_on, ENDPOINTS)):
                await asyncio.sleep(0.1)
        await all_copied(self.link)

    async def until_said(self, pattern: str, before: int) -> None:
        """Wait until the replicator has logged the pattern more often than ``before``."""
        async with asyncio.timeout(LONG):
            while self.times_said(pattern) <= before:
                await asyncio.sleep(0.1)

    def times_said(self, pattern: str) -> int:
        """The number of the replicator's log lines with the pattern."""
        return sum(bool(re.search(pattern, line)) for line in lines(self.replicator))


@contextlib.asynccontextmanager
async def link_with_source(directory: Path) -> AsyncIterator[Link]:
    """A link whose source end is ready."""
    async with link(directory) as made, made.running("source") as source:
        await source.wait_for_line("ready", PATIENCE)
        yield made


@contextlib.asynccontextmanager
async def copying(on: Link) -> AsyncIterator[Copying]:
    """A cluster, and a replicator that has copied with both workers."""
    variables = settings()
    async with spark_cluster(on, variables) as cluster, on.running("destination") as gateway, AsyncExitStack() as parts:
        await gateway.wait_for_line("ready", PATIENCE)
        async with on.running("replicate", **variables) as replicator:
            made = Copying(on, cluster, replicator, parts)
            await made.until_whole()
            yield made


async def all_copied(on: Link, count: int = 50) -> None:
    """Produce records to each partition, and require that every copy equals its source."""
    for partition in range(PARTITIONS):
        on.produce("orders", count, partition)
    for partition in range(PARTITIONS):
        wanted = await asyncio.to_thread(read_rows, on.orange, "orders", partition)
        assert await until_rows(on.grape, "orders.copy", len(wanted), partition) == wanted


async def gone(processes: list[psutil.Process]) -> bool:
    """True if all processes end."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=PATIENCE)
    return not alive
