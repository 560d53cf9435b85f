"""The clusters of both VPCs, and clients of them that know nothing of the appliance, each where its cluster is."""

import contextlib
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from demo.setenv import process_environment
from testbed.process import OwnedProcess
from testbed.properties import client_configuration
from tests.containers.sites import Side

SECONDS = 240.0

Records = list[list[object]]
"""The records of each partition, in their order: time, key, value and headers."""


class Clusters(ABC):
    """The clusters and their clients, whose files are below ``directory``."""

    __slots__ = ()
    directory: Path

    @abstractmethod
    def command(self, side: Side, *words: str) -> list[str]:
        """The command line that runs ``words`` in the network of a cluster."""

    @abstractmethod
    def say(self, side: Side, *words: str) -> str:
        """Run a command there, which must succeed; return its output."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of processes beside the appliance, without the user's settings."""
        return process_environment(os.environ, self.directory)

    def ca_file(self, side: Side) -> Path:
        """The certificate authority's file for the clients of a cluster."""
        return self.directory / side.name / "ca.pem"

    def topics(self, side: Side) -> set[str]:
        """The topics of a cluster without Kafka's own."""
        return {name for name in json.loads(self._client(side, "topics")) if not name.startswith("__")}

    def records(self, side: Side, topic: str) -> Records:
        """The current records of a topic."""
        return [json.loads(line) for line in self._client(side, "read", topic).splitlines()]

    def bombs(self, side: Side, topic: str, timestamp_type: str) -> None:
        """Make a topic of a few KB that take a gigabyte uncompressed."""
        self._client(side, "bombs", topic, timestamp_type)

    async def produce(self, side: Side, topic: str, who: str, count: int, seconds: float = 0.0) -> OwnedProcess:
        """Begin to write ``count`` records, all different, within ``seconds``."""
        log_file = self.directory / f"producer-{side.name}-{who}.log"
        arguments = ("produce", topic, who, str(count), str(seconds))
        command = self.command(side, *self._program(side), *arguments)
        return await OwnedProcess.start("producer", command, log_file, self.environment)

    @contextlib.asynccontextmanager
    async def running(self, sides: Iterable[Side]) -> AsyncIterator[None]:
        """The clusters of these sides with their DNS servers, ready."""
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
        return await OwnedProcess.start(f"{side.name} VPC", self.command(side, *program), log_file, self.environment)

    def _client(self, side: Side, *arguments: str) -> str:
        return self.say(side, *self._program(side), *arguments)

    def _program(self, side: Side) -> list[str]:
        configuration = self.directory / f"{side.name}.json"
        if not configuration.exists():
            ca_file = self.ca_file(side) if side.plan.security.encrypted else None
            user = next(iter(side.plan.api_keys), None)
            entries = client_configuration(side.plan, (side.bootstrap,), ca_file, user)
            configuration.touch(0o600)
            configuration.write_text(json.dumps(entries))
        return [sys.executable, "-m", "tests.containers.programs.client", str(configuration)]
