"""The processes on both sides for all tests: each VPC's cluster and DNS server, and each VM's engine."""

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from demo.setenv import process_environment
from testbed.process import OwnedProcess
from testbed.properties import client_configuration
from testbed.rehearsal import kafka_installation
from tests.containers.sites import GRAPE, NEIGHBOURS, SIDES, Machines, Side, machines
from tests.support.docker_engine import Engine, engine
from tests.support.namespace import Namespace

SECONDS = 240.0

Copied = list[list[object]]
"""The records of each partition, in their order: time, key, value and headers."""


@dataclass(frozen=True, slots=True)
class Vpcs:
    """The machines and engines of both sides, by the side's name, and a directory for settings, logs and clusters."""

    machines: Mapping[str, Machines]
    engines: Mapping[str, Engine]
    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of processes beside the containers, without the user's settings."""
        return process_environment(os.environ, self.directory)

    def ca_file(self, side: Side) -> Path:
        """The certificate authority's file for the clients of a cluster."""
        return self.directory / side.name / "ca.pem"

    def topics(self, side: Side) -> set[str]:
        """The topics of a cluster without Kafka's own."""
        return {name for name in json.loads(self._client(side, "topics")) if not name.startswith("__")}

    def records(self, side: Side, topic: str) -> Copied:
        """The current records of a topic."""
        return [json.loads(line) for line in self._client(side, "read", topic).splitlines()]

    def bombs(self, side: Side, topic: str, timestamp_type: str) -> None:
        """Make a topic of a few KB that take a gigabyte uncompressed."""
        self._client(side, "bombs", topic, timestamp_type)

    async def produce(self, side: Side, topic: str, who: str, count: int, seconds: float) -> OwnedProcess:
        """Begin to write ``count`` records, all different, within ``seconds``."""
        log_file = self.directory / f"producer-{side.name}-{who}.log"
        arguments = ("produce", topic, who, str(count), str(seconds))
        return await OwnedProcess.start("producer", self._command(side, *arguments), log_file, self.environment)

    def vpc(self, side: Side) -> Namespace:
        """The VPC of a cluster."""
        return self.machines[GRAPE.name if side.name in NEIGHBOURS else side.name].vpc

    def _client(self, side: Side, *arguments: str) -> str:
        command = self._command(side, *arguments)
        return self.vpc(side).say(*command[4:], environment=self.environment)

    def _command(self, side: Side, *arguments: str) -> list[str]:
        configuration = self.directory / f"{side.name}.json"
        if not configuration.exists():
            ca_file = self.ca_file(side) if side.plan.security.encrypted else None
            user = next(iter(side.plan.api_keys), None)
            entries = client_configuration(side.plan, (side.bootstrap,), ca_file, user)
            configuration.touch(0o600)
            configuration.write_text(json.dumps(entries))
        program = [sys.executable, "-m", "tests.containers.programs.client", str(configuration)]
        return self.vpc(side).command(*program, *arguments)


@contextlib.asynccontextmanager
async def vpcs(directory: Path) -> AsyncIterator[Vpcs]:
    """Both sides, ready."""
    await kafka_installation()
    with machines() as both:
        async with contextlib.AsyncExitStack() as undo:
            engines = {name: await undo.enter_async_context(engine(here.vm)) for name, here in both.items()}
            made = Vpcs(both, engines, directory)
            await undo.enter_async_context(clusters(made, SIDES))
            yield made


@contextlib.asynccontextmanager
async def clusters(made: Vpcs, sides: Mapping[str, Side]) -> AsyncIterator[None]:
    """The clusters of these sides, ready, each in its VPC."""
    async with contextlib.AsyncExitStack() as undo:
        started = [await _start_cluster(made, side) for side in sides.values()]
        for process in started:
            undo.push_async_callback(process.stop)
        for process in started:
            await process.wait_for_line("^ready$", SECONDS)
        yield


async def _start_cluster(made: Vpcs, side: Side) -> OwnedProcess:
    name = side.name
    program = [sys.executable, "-m", "tests.containers.programs.vpc", name, str(made.directory)]
    log_file = made.directory / f"{name}-vpc.log"
    return await OwnedProcess.start(f"{name} VPC", made.vpc(side).command(*program), log_file, made.environment)
