"""Two Kafka clusters beside the pods, in the node's network::

    orange                    grape
    10.1.0.10, .11            10.2.0.10
    DNS 10.1.0.53             DNS 10.2.0.53

They are those of tests/containers: each has a topic, and a DNS server that alone knows the names of its brokers.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from demo.setenv import process_environment
from testbed.kubernetes.node import Node
from testbed.process import OwnedProcess
from testbed.properties import client_configuration
from testbed.rehearsal import kafka_installation
from tests.containers.sites import SIDES, Side, names_in_vpc

SECONDS = 240.0
_POLL_SECONDS = 0.5

Records = list[list[object]]
"""The records of each partition, in their order: time, key, value and headers."""


@dataclass(frozen=True, slots=True)
class Brokers:
    """The clusters of a node; their files are below ``directory``."""

    node: Node
    directory: Path

    def ca_file(self, side: Side) -> Path:
        """The certificate authority's file for the clients of a cluster."""
        return self.directory / side.name / "ca.pem"

    def topics(self, side: Side) -> set[str]:
        """The topics of a cluster without Kafka's own."""
        return {name for name in json.loads(self._client(side, "topics")) if not name.startswith("__")}

    def records(self, side: Side, topic: str) -> Records:
        """The current records of a topic."""
        return [json.loads(line) for line in self._client(side, "read", topic).splitlines()]

    async def produce(self, side: Side, topic: str, who: str, count: int, seconds: float = 0.0) -> OwnedProcess:
        """Begin to write ``count`` records, all different, within ``seconds``."""
        command = self._command(side, "produce", topic, who, str(count), str(seconds))
        return await OwnedProcess.start(
            "producer", command, self.directory / f"producer-{side.name}-{who}.log", self._environment
        )

    async def wait_until_copied(self, source: Side, topic: str, destination: Side, copy: str) -> int:
        """Wait until the copy is as long as the original, and require that they are equal; return the number of
        records."""
        original = self.records(source, topic)
        copied: Records = []
        deadline = time.monotonic() + SECONDS
        while sum(map(len, copied)) < sum(map(len, original)):
            assert time.monotonic() < deadline, self.node.report()
            await asyncio.sleep(_POLL_SECONDS)
            known = copy in await asyncio.to_thread(self.topics, destination)
            copied = await asyncio.to_thread(self.records, destination, copy) if known else []
        assert copied == original
        return sum(map(len, original))

    @contextlib.asynccontextmanager
    async def running(self, sides: Iterable[Side]) -> AsyncIterator[None]:
        """The clusters of these sides, ready."""
        async with contextlib.AsyncExitStack() as undo:
            started = [await self._start(side) for side in sides]
            for process in started:
                undo.push_async_callback(process.stop)
            for process in started:
                await process.wait_for_line("^ready$", SECONDS)
            yield

    async def _start(self, side: Side) -> OwnedProcess:
        program = [sys.executable, "-m", "tests.containers.programs.vpc", side.name, str(self.directory)]
        log_file = self.directory / f"{side.name}-vpc.log"
        return await OwnedProcess.start(f"{side.name} VPC", self.node.command(*program), log_file, self._environment)

    @property
    def _environment(self) -> dict[str, str]:
        return process_environment(os.environ, self.directory)

    def _client(self, side: Side, *arguments: str) -> str:
        return self.node.say(*self._program(side), *arguments)

    def _command(self, side: Side, *arguments: str) -> list[str]:
        return self.node.command(*self._program(side), *arguments)

    def _program(self, side: Side) -> list[str]:
        configuration = self.directory / f"{side.name}.json"
        if not configuration.exists():
            ca_file = self.ca_file(side) if side.plan.security.encrypted else None
            user = next(iter(side.plan.api_keys), None)
            entries = client_configuration(side.plan, (side.bootstrap,), ca_file, user)
            configuration.touch(0o600)
            configuration.write_text(json.dumps(entries))
        return [sys.executable, "-m", "tests.containers.programs.client", str(configuration)]


@contextlib.asynccontextmanager
async def brokers(node: Node, directory: Path) -> AsyncIterator[Brokers]:
    """Both clusters with their DNS servers, ready."""
    await kafka_installation()
    made = Brokers(node, directory)
    names = {name: address for side in SIDES.values() for name, address in names_in_vpc(side).items()}
    node.configure(names, [*names.values(), *(side.dns.host for side in SIDES.values())])
    async with made.running(SIDES.values()):
        yield made
