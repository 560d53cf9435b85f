"""MirrorMaker 2's source connector in a Connect cluster of two workers, which share its group at the destination.

It has one task, so that one worker copies and the other stands by. It delivers exactly once (KIP-618). With Connect's
own settings, the task of a lost worker waits five minutes for that worker; ``TUNED`` is the group's fastest way that
leaves its session as long as ours.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from appliance.errors import ProcessFailed
from bench.lib.clusters import Pair
from bench.lib.running import OWN_ADDRESS, free_port
from testbed import jars
from testbed.jars import java
from testbed.process import OwnedProcess

TUNED: Mapping[str, str] = {"scheduled.rebalance.max.delay.ms": "0", "session.timeout.ms": "10000"}
"""Entries of a worker. The session is Connect's default too."""

DEFAULTS: Mapping[str, str] = {}

_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
_CONNECTOR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_JAVA_OPTIONS = ("-Xms256M", "-Xmx512M", "-server", "-XX:+UseParallelGC", "-XX:-UsePerfData")
_STARTED = "Finished starting connectors and tasks"
_START_SECONDS = 60.0
_POLL_SECONDS = 0.2


@dataclass(slots=True)
class ConnectWorkers:
    """The workers, by the address of their REST server; ``connector`` names the connector, the group and its topics."""

    pair: Pair
    connector: str
    settings: Mapping[str, str]
    workers: dict[str, OwnedProcess] = field(default_factory=dict)

    @property
    def processes(self) -> Sequence[OwnedProcess]:
        """The workers."""
        return list(self.workers.values())

    async def add(self) -> None:
        """Start a worker, and wait until it is in the group."""
        address = f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}"
        name = f"{self.connector}-{address.rpartition(':')[2]}"
        file = self.pair.directory / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self._worker(address).items()))
        classpath = await asyncio.to_thread(jars.classpath, jars.MIRROR_MAKER)
        options = [*_JAVA_OPTIONS, "-Dlog4j2.level=INFO", f"-Djava.io.tmpdir={self.pair.directory}"]
        command = [java(), *options, "-cp", classpath, _MAIN, str(file)]
        log_file = self.pair.directory / f"{name}.log"
        process = await OwnedProcess.start("a worker of Kafka Connect", command, log_file)
        self.workers[address] = process
        await process.wait_for_line(_STARTED, _START_SECONDS)

    async def create(self, load: str, alias: str) -> None:
        """Create the connector, which copies the topic ``load`` to ``<alias>.<load>``."""
        address, *_ = self.workers
        config = _mirror(self.pair, load, alias)
        async with _session() as session:
            body = {"name": self.connector, "config": config}
            async with session.post(f"http://{address}/connectors", json=body) as answer:
                if not answer.ok:
                    raise ProcessFailed(f"Kafka Connect refuses the connector: {await answer.text()}")

    async def active(self) -> OwnedProcess:
        """The worker that has the task."""
        found: list[OwnedProcess] = []
        first = next(iter(self.workers.values()))

        async def runs() -> bool:
            found[:] = [self.workers[address] for address in await self._running() if address in self.workers]
            return bool(found)

        await first.wait_until(runs, _START_SECONDS, "run the task")
        return found[0]

    async def replace(self, gone: OwnedProcess) -> None:
        """Start another worker in the place of one that has ended."""
        self.workers = {address: process for address, process in self.workers.items() if process is not gone}
        await self.add()

    async def stop(self) -> None:
        """Kill all of them: an orderly stop moves the task once more."""
        for process in self.workers.values():
            await process.kill()

    async def _running(self) -> list[str]:
        """The addresses of the workers with a running task, by the first worker that answers."""
        async with _session() as session:
            for address in self.workers:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with session.get(f"http://{address}/connectors/{self.connector}/status") as answer:
                        tasks: list[dict[str, Any]] = (await answer.json()).get("tasks", [])
                        return [task["worker_id"] for task in tasks if task["state"] == "RUNNING"]
        await asyncio.sleep(_POLL_SECONDS)
        return []

    def _worker(self, address: str) -> dict[str, str]:
        """The entries of connect-distributed.properties."""
        topics = {f"{kind}.storage.topic": f"{self.connector}.{kind}" for kind in ("config", "offset", "status")}
        factors = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
        entries = {
            "bootstrap.servers": self.pair.destination.home_bootstrap,
            "group.id": self.connector,
            "listeners": f"http://{address}",
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "exactly.once.source.support": "enabled",
            "plugin.discovery": "service_load",
        }
        return {**entries, **topics, **factors, **self.settings}


def _mirror(pair: Pair, topic: str, alias: str) -> dict[str, str]:
    """The connector's configuration; it reads what is committed, without which it does not deliver exactly once."""
    return {
        "connector.class": _CONNECTOR,
        "tasks.max": "1",
        "topics": topic,
        "source.cluster.alias": alias,
        "target.cluster.alias": "destination",
        "source.cluster.bootstrap.servers": pair.source.home_bootstrap,
        "target.cluster.bootstrap.servers": pair.destination.home_bootstrap,
        "source.consumer.isolation.level": "read_committed",
        "exactly.once.support": "required",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
    }


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10.0))


@contextlib.asynccontextmanager
async def connect_workers(
    pair: Pair, topic: str, alias: str, settings: Mapping[str, str]
) -> AsyncIterator[ConnectWorkers]:
    """Two workers that copy the topic to ``<alias>.<topic>``, killed at the end of the block."""
    workers = ConnectWorkers(pair, alias, settings)
    try:
        await workers.add()
        await workers.add()
        await workers.create(topic, alias)
        yield workers
    finally:
        await workers.stop()
