"""Commands as processes that are killed at one of their steps: a request to either cluster that changes something.

A command finds each broker at a proxy, and everything else goes to the brokers themselves. A step either does not reach
its broker, as if the kill came before it; or it does, and its answer comes to nobody.
"""

import asyncio
import contextlib
import itertools
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from appliance.commands.run.operation import Choice, operation
from appliance.link.model.copy_states import CopyState, effective
from appliance.settings.target import Target
from appliance.settings.values import SecurityProtocol
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from testbed.process import OwnedProcess
from tests.faults.checker import Violation, misstatements, passed
from tests.faults.kafka_proxy import KafkaProxy, Moment, StepTrap
from tests.faults.observer import Observer
from tests.support.commands import command_line, settings_file
from tests.support.engine import Engine, Pair
from tests.support.groups import commit, committed, produce_numbered, wait_for_coordinator
from tests.support.patience import PATIENCE
from tests.support.rows import contents

MOMENTS = (Moment.SILENT, Moment.BEFORE_ANSWER)
_LANES = 2
_numbers = itertools.count()
_SOURCE, _DESTINATION = Node(0, "127.0.36.1", "127.0.38.1"), Node(0, "127.0.37.1", "127.0.38.2")
"""Where the brokers are, and where their proxies are, which commands are told."""


@dataclass(frozen=True, slots=True)
class Behind:
    """Both clusters, with proxies before them."""

    source: Cluster
    destination: Cluster
    trap: StepTrap
    proxies: Sequence[KafkaProxy]


@contextlib.asynccontextmanager
async def clusters_behind_proxies(directory: Path) -> AsyncIterator[Behind]:
    """One broker a side, in plain text."""
    plans = (
        ClusterPlan("orange", (_SOURCE,), SecurityProtocol.PLAINTEXT),
        ClusterPlan("grape", (_DESTINATION,), SecurityProtocol.PLAINTEXT),
    )
    async with Cluster(plans[0], directory) as source, Cluster(plans[1], directory) as destination:
        trap, proxies = StepTrap(), []
        for cluster in (source, destination):
            (node,), (listen,) = cluster.plan.nodes, cluster.vpc_targets
            proxies.append(KafkaProxy(listen, Target(node.address, listen.port), None, trap))
        try:
            for proxy in proxies:
                await proxy.start()
            yield Behind(source, destination, trap, proxies)
        finally:
            for proxy in proxies:
                await proxy.close()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A topic after a command: its states by lane, and the records on both sides, by value.

    ``left`` are the source's records after the position, ``unread`` those of the copy that the group has to read yet.
    """

    states: tuple[CopyState, ...]
    copied: int
    left: tuple[str, ...]
    source: tuple[str, ...]
    copy: tuple[str, ...]
    unread: tuple[str, ...]


@dataclass(slots=True)
class Commands:
    """The commands of one link, whose topics are each for one kill."""

    behind: Behind
    pair: Pair
    engine: Engine
    directory: Path
    settings: Path = field(init=False)
    _made: int = 0
    _is_established: bool = False

    def __post_init__(self) -> None:
        sides = {"SOURCE": self.behind.source, "DESTINATION": self.behind.destination}
        servers = {f"{side}_BROKER_SERVERS": str(cluster.vpc_targets[0]) for side, cluster in sides.items()}
        for cluster in sides.values():
            wait_for_coordinator(cluster, self.group)
        own = {"TASKS": "1", "CONSOLE_LISTEN": "127.0.0.1:0", "GROUPS_SYNC_SECONDS": "0.5"}
        groups = {"REPLICA_GROUPS_REGEX": f"{self.group}.*"}
        self.settings = settings_file(self.pair, self.directory, **servers, **own, **groups)

    @property
    def group(self) -> str:
        """The group that consumes every topic; others have names that begin with its name."""
        return f"billing-{self.pair.tag}"

    async def topics(self, count: int) -> list[str]:
        """New topics of five records, of which three are consumed; all of them are copied."""
        made = [self.pair.topic(f"killed-{self._made + number}") for number in range(count)]
        self._made += count
        for topic in made:
            produce_numbered(self.pair.producer(), topic, 5)
        await self.copy()
        commit(self.pair.orange, self.group, {(topic, 0): 3 for topic in made})
        return made

    async def copy(self) -> None:
        """Copy all that there is, by lanes that begin anew."""
        self.engine.runners.clear()
        if not self._is_established:
            await self.engine.establish(LANES=str(_LANES))
            self._is_established = True
        await self.engine.assign()
        await self.engine.copy_all()

    async def start(self, name: str, *options: str) -> OwnedProcess:
        """Start a command."""
        log = self.directory / f"{name}-{next(_numbers)}.log"
        return await OwnedProcess.start(
            name, command_line(name, self.settings, *options), log, {**os.environ, "TMPDIR": str(self.directory)}
        )

    async def run(self, name: str, *options: str) -> str:
        """Run a command to its good end; its output."""
        process = await self.start(name, *options)
        assert await process.wait(PATIENCE) == 0, process.failure("failed")
        print(f"{name} {options}:\n{process.log_file.read_text()}")
        return process.log_file.read_text()

    async def said(self, name: str, *options: str) -> Mapping[str, Any]:
        """Run a command to its good end; what it says as JSON."""
        output = await self.run(name, *options, "--json")
        found: Mapping[str, Any] = json.loads(output[output.index("\n{") if not output.startswith("{") else 0 :])
        return found

    async def violations(self, topic: str, said: Mapping[str, Any]) -> list[Violation]:
        """The checker's findings in what a command said of a topic, and in the group's offset, by both logs now."""
        partition, copy = (topic, 0), (self.pair.naming.destination(topic), 0)
        written = Observer(self.pair.orange.client_configuration(), {partition: partition})
        copied = Observer(self.pair.grape.client_configuration(), {copy: partition})
        for side in (written, copied):
            await side.read_to_ends()
        tracks = written.tracks[partition], copied.tracks[partition]
        read_to, _ = committed(self.pair.orange, self.group)[partition]
        there, _ = committed(self.pair.grape, self.group).get(copy, (0, ""))
        found = list(misstatements(said, partition, *tracks))
        return [*found, *passed(partition, read_to, tracks[0], there, tracks[1])]

    async def kill(self, step: int, moment: Moment, name: str, *options: str) -> None:
        """Run a command that is killed at a step; it may end before, where it has fewer this time."""
        trap, process = self.behind.trap, await self.start(name, *options)
        trap.strike_at(step, moment, lambda: os.kill(process.pid, signal.SIGKILL))
        try:
            code = await process.wait(PATIENCE)
            had_fewer = code == 0 and trap.steps[moment] < step
            assert code == -signal.SIGKILL or had_fewer, process.failure(f"was not killed at step {step}")
        finally:
            await process.kill()

    @contextlib.asynccontextmanager
    async def stopped(self, step: int, name: str, *options: str) -> AsyncIterator[OwnedProcess]:
        """A command that stands still within the block, right after it has sent the request of a step."""
        trap, process = self.behind.trap, await self.start(name, *options)
        trap.strike_at(step, Moment.SILENT, lambda: os.kill(process.pid, signal.SIGSTOP), passes=True)
        ended, sprung = (asyncio.ensure_future(each) for each in (process.wait(PATIENCE), trap.sprung.wait()))
        try:
            await asyncio.wait([ended, sprung], return_when=asyncio.FIRST_COMPLETED)
            yield process
        finally:
            sprung.cancel()
            if process.running:
                os.kill(process.pid, signal.SIGCONT)
            await ended

    async def code(self, process: OwnedProcess) -> int:
        """The exit code of a command that another one has got in the way of: it is done, or says so."""
        code, said = await process.wait(PATIENCE), process.log_file.read_text()
        print(f"{process.name}: {code}\n{said}")
        refused = code == 1 and any(
            words in said.splitlines()[-1] for words in ("another", "run `appliance failover` again")
        )
        assert code == 0 or refused, process.failure(f"ended with {code}")
        return code

    async def steps(self, name: str, *options: str) -> int:
        """Run a command undisturbed; the number of its steps."""
        self.behind.trap.strike_at(0, Moment.SILENT, lambda: None)
        await self.run(name, *options)
        return self.behind.trap.steps[Moment.SILENT]

    async def outcome(self, topic: str) -> Outcome:
        """A topic as it is now."""
        copy = self.pair.naming.destination(topic)
        async with operation(self.pair.settings(), Choice(), lambda _: None) as running:
            await running.lanes.read()
            states = tuple(effective(checkpoint.states, topic) for checkpoint in running.lanes.checkpoints)
            held = running.lanes.positions[topic, 0]
        source = await asyncio.to_thread(contents, self.pair.orange, topic)
        copied = await asyncio.to_thread(contents, self.pair.grape, copy)
        unread = await self.unread(self.group, copy)
        return Outcome(
            states,
            held.records,
            _from(source, held.next_offset),
            _from(source, 0),
            _from(copied, 0),
            _from(copied, 0)[len(copied) - unread :],
        )

    async def unread(self, group: str, copy: str) -> int:
        """The number of records of a copy that a group has to read yet."""
        found = await asyncio.to_thread(contents, self.pair.grape, copy)
        consumed, _ = committed(self.pair.grape, group).get((copy, 0), (0, ""))
        return len(_from(found, consumed))


def _from(found: Sequence[tuple[int, str]], offset: int) -> tuple[str, ...]:
    return tuple(value for at, value in found if at >= offset)
