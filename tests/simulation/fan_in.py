"""A fan-in: two simulated links that write one copy, and the invariants that hold for both together."""

import asyncio
import contextlib
import functools
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from unittest import mock

from appliance.commands import resumption as resume
from appliance.commands.removal import remove_topics
from appliance.commands.resumption import Choice
from appliance.commands.run import operation
from appliance.errors import ApplianceError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import unpack
from appliance.link import handle
from appliance.link.model.naming import PRODUCERS
from appliance.link.model.producers import Producers
from appliance.settings.values import Settings
from tests.simulation.administration import Administration
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.coordinator import Transaction, undecided
from tests.simulation.invariants import Violation
from tests.simulation.link import Link
from tests.simulation.log import Log, batch_of, seen
from tests.simulation.loop import Life, SimulatedLoop
from tests.simulation.open_transactions import OpenTransactions
from tests.support.operating import run_command

Command = Callable[[], Coroutine[object, object, object]]

SOURCES = ("orange", "lemon")
_APART = 1_000_000
"""So far the numbers of the records of two sources lie apart: no record is one of both."""


@contextlib.contextmanager
def reached(world: "FanIn") -> Iterator[None]:
    """Within the block the commands of each link reach its clusters."""

    @contextlib.asynccontextmanager
    async def source(known: Settings) -> AsyncIterator[SimulatedCluster]:
        (link,) = [link for link in world.links if link.settings is known]
        yield link.at_source()

    @contextlib.asynccontextmanager
    async def destination(_: Settings) -> AsyncIterator[SimulatedCluster]:
        yield world.links[0].at_destination()

    clusters = {"source_cluster": source, "destination_cluster": destination}
    with mock.patch.multiple(handle, **clusters):
        yield


class FanIn:
    """Two links and their one destination; ``removed`` are the links that have given the topic up."""

    def __init__(self, chance: random.Random, loop: SimulatedLoop, fates: Fates) -> None:
        self.chance, self.loop, self.fates = chance, loop, fates
        self.violation: Violation | None = None
        self.removed: set[str] = set()
        self._commands: list[tuple[Life, asyncio.Task[None], Link, Command]] = []
        self.destination = Brokers("grape", self._later, self._committed)
        Administration(self.destination)
        OpenTransactions(self.destination)
        self.links = [Link(chance, loop, fates, True, False, True, name, self.destination) for name in SOURCES]
        for number, link in enumerate(self.links):
            link.workload.written = number * _APART
            link.make_at_source("orders", chance.choice((1, 1, 2)))

    def _later(self, reason: str, act: Callable[[], None]) -> None:
        self.links[0].later(reason, act)

    def _committed(self, transaction: Transaction) -> None:
        """Let the link judge whose transaction commits."""
        for link in self.links:
            if transaction.id.startswith(f"{link.naming.replicator}."):
                link.committed(transaction)
                self.violation = self.violation or link.violation
        if not self.violation and (nameless := self._nameless(transaction)):
            self.violation = Violation(f"I: {transaction.id} writes to {nameless}, and has left no name for its epoch")

    def _nameless(self, transaction: Transaction) -> list[Log]:
        """The copies that a lane writes to before its name is in the topic of producers."""
        copies = [log for (topic, _), log in transaction.partitions.items() if topic == self.copy]
        written = [log for log in copies if log.pending(transaction.producer)]
        if not written:
            return []
        names = Producers(self.destination.name)
        topic = self.destination.topics.get(PRODUCERS)
        for entry in topic.logs[0].entries if topic else ():
            if not entry.marker:
                names.take(unpack(batch_of(entry), 0))
        held = names.lanes.get(transaction.producer)
        return [] if held and held.epoch >= transaction.epoch else written

    @property
    def copy(self) -> str:
        """The name of the copy."""
        return self.links[0].naming.destination("orders")

    def copies(self) -> list[Log]:
        """The logs of the copy."""
        topic = self.destination.topics.get(self.copy)
        return topic.logs if topic else []

    def grow_copy(self) -> None:
        """The operator does what a log line asks for: grows a copy that was made and claimed by no link."""
        most = max(len(link.source.topics["orders"].logs) for link in self.links)
        if self.copies() and len(self.copies()) < most:
            self.fates.note("grown:", self.copy)
            self.destination.grow(self.copy, most)

    def retain(self) -> None:
        """Retention takes the beginning of a partition of the copy."""
        if logs := [log for log in self.copies() if log.entries]:
            log = self.chance.choice(logs)
            log.delete_before(self.chance.choice(log.entries).base)
            for link in self.links:
                link.invariants.deleted(log)
                link.befell("orders", log.number)
            self.fates.note("retention:", log, "starts at", log.start)

    def crash(self) -> None:
        """Kill a replicator, and start another."""
        if running := [(link, each) for link in self.links for each in link.processes if each.runs]:
            link, process = self.chance.choice(running)
            self.fates.note("kill", process.life.name)
            process.kill()
            link.at(self.loop.time() + 0.3 * self.chance.random(), link.start_process)

    def supervise(self) -> None:
        """Start a replicator where none runs."""
        for link in self.links:
            if not any(process.runs for process in link.processes):
                link.start_process()

    def remove(self) -> None:
        """``rm-topic`` at a link, killed or not."""
        link = self.chance.choice(self.links)
        self.removed.add(link.source.name)
        self._begin(link, lambda: self._remove(link))
        self.later(self.chance.random(), self._kill_command)

    async def _remove(self, link: Link) -> None:
        async with operation.operation(link.settings, operation.Choice("orders", yes=True), self._told) as running:
            self.fates.note("removed:", await run_command(running, remove_topics))

    def resume(self) -> None:
        """The operator has each stopped partition go on, but none of a topic that is removed."""
        for link in self.links:
            held = link.invariants.positions.items() if link.source.name not in self.removed else ()
            for topic, number in sorted(partition for partition, position in held if position.stopped):
                link.invariants.named.add(Partition(topic, number))
                choice = Choice(topic, number, self.chance.choice(("earliest", "latest")))
                self._begin(link, functools.partial(resume.resume, link.settings, choice, self._told))

    def _told(self, line: str) -> None:
        self.fates.note(line)

    def _begin(self, link: Link, command: Command) -> None:
        life = Life(f"{link.source.name}-command-{len(self._commands) + 1}")
        self._commands.append((life, self.loop.start(life, self._insist(command)), link, command))

    async def _insist(self, command: Command) -> None:
        """Run a command until it ends well."""
        while True:
            try:
                self.fates.note("done:", await command())
                return
            except ApplianceError as error:
                self.fates.note("failed:", error)
            await asyncio.sleep(0.5)

    def _kill_command(self) -> None:
        """Kill the newest command if it still runs, and run it again."""
        life, task, link, command = self._commands[-1]
        if not task.done() and self.chance.random() < 0.7:
            self.fates.note("kill", life.name)
            life.alive = False
            self._begin(link, command)

    def later(self, delay: float, act: Callable[[], None]) -> None:
        """Have something happen so much later."""
        self.loop.at(self.loop.time() + delay, self.loop.world, act)

    def check(self) -> None:
        """Raise what does not hold, or what a process has ended by."""
        if self.violation:
            raise self.violation
        tasks = [(life, task) for life, task, *_ in self._commands]
        tasks += [(process.life, process.task) for link in self.links for process in link.processes]
        for life, task in tasks:
            if life.alive and task.done() and (error := task.exception()):
                raise Violation(f"{life.name} ended by {error!r}") from error

    def unsettled(self) -> list[str]:
        """What is not copied, nor reported as stopped, or not decided yet."""
        found = [f"{link.source.name}: {each}" for link in self.links for each in link.at_rest.unsettled(link.may_stop)]
        found += [f"{log} is open" for log in self.destination.logs() if log.open]
        if undecided(self.destination.coordinator.transactions.values()):
            found.append("a transaction")
        found += [life.name for life, task, *_ in self._commands if life.alive and not task.done()]
        return found

    def check_copies(self) -> None:
        """A, B, E, I: a read_committed consumer sees each record that a link has committed, once, and no other."""
        for log in self.copies():
            held = sorted(each for link in self.links for each in link.invariants.copies.get(log, []))
            if seen(log) != held:
                raise Violation(f"A, B: {log} holds {seen(log)}, committed were {held}")
