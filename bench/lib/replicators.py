"""Two replicators of one link on this machine, as on two VMs: one copies, and the other stands by."""

import asyncio
import contextlib
import json
import os
import time
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from appliance.errors import ProcessFailed
from bench.lib.clients import ERRORS_ONLY
from bench.lib.clusters import Pair
from bench.lib.filling import Load
from bench.lib.our_replicator import appliance_command, link_file
from bench.lib.running import environment
from testbed.cluster import Cluster
from testbed.process import OwnedProcess

_READY_SECONDS = 60.0
_ANSWER_SECONDS = 10.0
_OWN_PORTS = {"CONSOLE_LISTEN": "127.0.0.1:0"}


@dataclass(frozen=True, slots=True)
class GroupOfReplicators:
    """The group of a link: its coordinator, the assignment, and what each member says of itself.

    While it is not ``settled``, members come or go, and nothing is known of them.
    """

    coordinator: int = -1
    assignment: Mapping[str, Any] = field(default_factory=dict)
    members: Sequence[Mapping[str, Any]] = ()
    settled: bool = True


@dataclass(slots=True)
class Replicators:
    """The replicators, the active one first; ``hand_overs`` is the number of the latest one."""

    pair: Pair
    env_file: Path
    group: str
    processes: list[OwnedProcess] = field(default_factory=list)
    hand_overs: int = 0

    async def add(self) -> None:
        """Start a replicator, and wait until it stands by."""
        directory, command = self.pair.directory, appliance_command("replicate", self.env_file)
        log_file = directory / f"{self.group}-{time.monotonic_ns()}.log"
        variables = environment(os.environ, directory)
        process = await OwnedProcess.start("our replicator", command, log_file, variables)
        self.processes.append(process)
        await process.wait_until(self._all_ready, _READY_SECONDS, "stand by")

    async def active(self) -> OwnedProcess:
        """The one that copies: the group must have handed over as often as it had to."""
        number = (await self._described()).assignment.get("number")
        if number != self.hand_overs + 1:
            raise ProcessFailed(f"hand-over {number} of {self.group}, {self.hand_overs + 1} was expected")
        return self.processes[0]

    async def replace(self, gone: OwnedProcess) -> None:
        """Start another replicator in the place of one that has ended."""
        self.processes.remove(gone)
        self.hand_overs += 1
        await self.add()

    async def stop(self) -> None:
        """Kill all of them."""
        for process in self.processes:
            await process.kill()

    async def _all_ready(self) -> bool:
        """True once all are in the group and could copy at once; the first one, alone, copies as soon as it can."""
        members = (await self._described()).members
        return len(members) == len(self.processes) and (len(members) == 1 or all(each["ready"] for each in members))

    async def _described(self) -> GroupOfReplicators:
        return await described(self.pair.destination, self.group)


async def described(destination: Cluster, group: str) -> GroupOfReplicators:
    """The group as its coordinator shows it to anybody; empty before its first member comes, and if none answers."""
    admin = AdminClient({**destination.client_configuration(), **ERRORS_ONLY})
    with contextlib.suppress(KafkaException):
        for found in await asyncio.to_thread(_listed, admin, group):
            said = [(_decoded(each.assignment), _decoded(each.metadata)) for each in found.members]
            coordinator = found.broker.id if found.broker else -1
            if found.state == "Stable" and said:
                return GroupOfReplicators(coordinator, said[0][0], [words for _, words in said])
            return GroupOfReplicators(coordinator, settled=found.state in ("Empty", "Dead"))
    return GroupOfReplicators()


def _listed(admin: AdminClient, group: str) -> list[Any]:
    """The group with the words of its members, which the newer call leaves out."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        listed: list[Any] = admin.list_groups(group, _ANSWER_SECONDS)
    return listed


def _decoded(words: bytes | None) -> Mapping[str, Any]:
    decoded: Mapping[str, Any] = json.loads(words or b"{}")
    return decoded


@contextlib.asynccontextmanager
async def replicators(pair: Pair, load: Load, link: str) -> AsyncIterator[Replicators]:
    """Two replicators of a new link that copies the load, killed at the end of the block."""
    both = Replicators(pair, link_file(pair, load, link, link, _OWN_PORTS), f"replicator-{link}")
    try:
        await both.add()
        await both.add()
        yield both
    finally:
        await both.stop()
