"""A Spark cluster as a user starts it: one master, and a worker on each of two hosts, which are loopback addresses."""

import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psutil

from bench.lib.running import OWN_ADDRESS, free_port
from testbed.process import OwnedProcess
from tests.support.link import Link
from tests.support.patience import PATIENCE
from tests.support.processes import runs

ENDPOINTS = {"127.0.0.2": "127.65.0.0/16", "127.0.0.3": "127.66.0.0/16"}
"""Each host, and the network in which its own gateway gives the source's brokers their addresses."""

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
DAEMON = "appliance.replicator.spark.daemon"


@dataclass(slots=True)
class SparkCluster:
    """Its settings, with what each host has of its own, and its parts, which run."""

    settings: dict[str, str]
    own: dict[str, dict[str, str]]
    master: OwnedProcess
    workers: dict[str, OwnedProcess]

    def started_by(self, host: str) -> list[psutil.Process]:
        """All that the host's worker has started."""
        return psutil.Process(self.workers[host].pid).children(recursive=True)

    def executor(self, host: str) -> psutil.Process:
        """The Java machine in which the host's worker runs our tasks."""
        (found,) = (process for process in self.started_by(host) if runs(process, EXECUTOR))
        return found

    def python_workers(self, host: str) -> list[psutil.Process]:
        """The Python processes on the host that copy: forks of a daemon."""
        daemons = [process for process in self.started_by(host) if runs(process, DAEMON)]
        return [worker for daemon in daemons for worker in daemon.children()]

    def executors(self) -> list[psutil.Process]:
        """The executors of both hosts, and all that they have started."""
        found = [self.executor(host) for host in self.workers]
        return [*found, *(process for executor in found for process in executor.children(recursive=True))]


def settings() -> dict[str, str]:
    """What makes a link's settings those of a cluster of two tasks."""
    return {
        "SPARK_MASTER": f"spark://{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}",
        "SPARK_AUTHENTICATE_SECRET": secrets.token_urlsafe(33),
        "TASKS": "2",
    }


@contextlib.asynccontextmanager
async def spark_cluster(
    on: Link, variables: dict[str, str], environment: Mapping[str, str] = os.environ
) -> AsyncIterator[SparkCluster]:
    """A worker of one core on each host, with a gateway beside it that only its executors ask."""
    own = {
        host: {"DNS_LISTEN": f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}", "TUNNEL_ENDPOINT_NETWORK": network}
        for host, network in ENDPOINTS.items()
    }
    async with AsyncExitStack() as parts:
        master = await parts.enter_async_context(on.running("spark", "master", **variables))
        cluster = SparkCluster(variables, own, master, {})
        for host in ENDPOINTS:
            gateway = await parts.enter_async_context(on.running("destination", **own[host]))
            await gateway.wait_for_line("ready", PATIENCE)
            cluster.workers[host] = await start_worker(on, parts, host, environment, **variables, **own[host])
        yield cluster


async def start_worker(
    on: Link, parts: AsyncExitStack, host: str, environment: Mapping[str, str] = os.environ, **variables: str
) -> OwnedProcess:
    """A worker of one core, ended with ``parts``."""
    worker = await on.start("spark", environment, ["worker", "--cores", "1", "--host", host], **variables)
    parts.push_async_callback(worker.kill)
    return worker
