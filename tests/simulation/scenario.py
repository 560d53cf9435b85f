"""Links to which nothing happens but what a test does."""

import random
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from appliance.commands.model.position_change import Place
from appliance.commands.reset import reset
from appliance.commands.resumption import Choice, resume
from appliance.commands.run import operation
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import stamp_crc
from appliance.kafka.records.records import Record, body, pack
from appliance.link.model.naming import Naming
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica
from appliance.settings.values import OnGap, Side, Start
from tests.simulation.administration import Administration
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.log import Log
from tests.simulation.loop import SimulatedLoop
from tests.simulation.operator_commands import simulated
from tests.simulation.process import TRANSACTION_TIMEOUT, Replicator, settings
from tests.support.operating import run_command

Result = TypeVar("Result")

PRODUCER, PRODUCER_AT = struct.Struct(">qhi"), 43
"""A batch's producer id, epoch and first sequence number, which are -1 without a producer."""


class Clusters:
    """Both clusters of a link to which nothing happens but what a test does."""

    def __init__(self) -> None:
        chance = random.Random(0)
        self.loop = SimulatedLoop(chance)
        self.source, self.destination = (Brokers(name, self._later, lambda _: None) for name in ("orange", "grape"))
        Administration(self.source)
        Administration(self.destination)
        self.fates = fates = Fates(self.loop, chance)
        self.at_source = SimulatedCluster(self.source, Side.SOURCE, self.loop.world, fates)
        self.at_destination = SimulatedCluster(self.destination, Side.DESTINATION, self.loop.world, fates)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = self.loop.start(self.loop.world, work)
        self.loop.run_while(lambda: not task.done())
        return task.result()

    def _later(self, reason: str, act: Callable[[], None]) -> None:
        delay = 0.001 if reason == "marker" else TRANSACTION_TIMEOUT
        self.loop.at(self.loop.time() + delay, self.loop.world, act)


class Link(Clusters):
    """A link between the clusters whose one process copies what it is told to."""

    def __init__(self, on_gap: OnGap = OnGap.STOP, lanes: int = 1) -> None:
        super().__init__()
        self.settings = settings("orange", on_gap, Start.EARLIEST, lanes)
        self.naming = Naming.of(self.settings)
        self.positions = self.destination.make(self.naming.positions_topic, lanes, {"cleanup.policy": "compact"})
        self.process = Replicator(1, self.source, self.destination, self.fates, self.settings)
        self._written = 0
        self._tick()

    def replicas(self) -> tuple[Replica, ...]:
        """Make copies for all partitions of the source, and return them."""
        found: list[Replica] = []
        for topic in self.source.topics.values():
            name = self.naming.destination(topic.name)
            copy = self.destination.topics.get(name) or self.destination.make(name, len(topic.logs))
            found += [Replica(topic.name, log.number, name, topic.id, copy.id) for log in topic.logs]
        return tuple(found)

    def write(self, log: Log, count: int = 1) -> None:
        """A batch of a producer that has no transaction."""
        values = [body(None, b"%d" % (self._written + number)) for number in range(count)]
        records = [Record(0, 1_700_000_000_000 + self._written + n, value) for n, value in enumerate(values)]
        data = bytearray(pack(records, 0))
        PRODUCER.pack_into(data, PRODUCER_AT, -1, -1, -1)
        stamp_crc(data)
        log.append(data, [(record.timestamp, record.body) for record in records])
        self.source.changed(log)
        self._written += count

    def go_on(self, seconds: float) -> None:
        until = self.loop.time() + seconds
        self.loop.run_while(lambda: self.loop.time() < until)

    def faults(self) -> dict[str, str]:
        return {subject: str(error) for subject, error in self.process.faults.items()}

    def _tick(self) -> None:
        """Let time go on when nothing is due."""
        self.loop.at(self.loop.time() + 0.2, self.loop.world, self._tick)


def copied(link: Link, topic: str, partition: int = 0) -> int:
    """The number of records in a copy."""
    entries = link.destination.topics[topic].logs[partition].entries
    return sum(entry.last - entry.base + 1 for entry in entries if not entry.marker)


class Begun(Link):
    """A link that has copied the ten records of a source partition, if its process has started.

    While it ``holds_markers``, the coordinator does not write the markers of the copy: they are ``held``.
    """

    def __init__(self, on_gap: OnGap = OnGap.STOP, *, starts: bool = True) -> None:
        self.holds_markers = False
        self.held: list[Callable[[], None]] = []
        super().__init__(on_gap)
        self.log: Log = self.source.make("aaa", 1).logs[0]
        self.write_singly(10)
        if starts:
            self.process.start(self.replicas())
            self.go_on(2)

    def resume(self, start: str) -> None:
        with simulated(self.source, self.destination, self.fates):
            assert self.run(resume(self.settings, Choice("aaa", 0, start), lambda _: None)) == 1

    def reset(self, to: str) -> None:
        self.command(lambda running: reset(running, Place.parse("--to", to), None))

    def command(self, command: Callable[[operation.Operation], Awaitable[Any]], dry_run: bool = False) -> Any:
        async def run() -> Any:
            choice = operation.Choice("aaa", yes=True, dry_run=dry_run)
            async with operation.operation(self.settings, choice, print) as running:
                return await run_command(running, command)

        with simulated(self.source, self.destination, self.fates):
            return self.run(run())

    def position(self) -> Position:
        async def read(running: operation.Operation) -> Position:
            await running.lanes.read()
            return running.lanes.positions["aaa", 0]

        found: Position = self.command(read)
        return found

    def _later(self, reason: str, act: Callable[[], None]) -> None:
        if reason == "marker" and self.holds_markers and (act.__defaults__ or (Partition("", 0),))[0][0] == "aaa.copy":
            self.held.append(act)
        else:
            super()._later(reason, act)

    @property
    def copy_log(self) -> Log:
        """The copy's log."""
        return self.destination.topics["aaa.copy"].logs[0]

    @property
    def copy_count(self) -> int:
        """The number of records in the copy."""
        return copied(self, "aaa.copy")

    def write_copy(self, count: int) -> None:
        """Records of a producer at the copy."""
        for _ in range(count):
            self.write(self.copy_log)
        self.destination.changed(self.copy_log)

    def write_singly(self, count: int) -> None:
        for _ in range(count):
            self.write(self.log)

    def lose(self, offset: int, written: int = 6) -> None:
        """The source comes back without its newest records, and is written on."""
        self.log.truncate(offset)
        self.source.lead(self.log, self.log.leader)
        self.write_singly(written)

    def lose_copy(self, offset: int) -> None:
        """The copy comes back without its newest records."""
        self.copy_log.truncate(offset)
        self.destination.lead(self.copy_log, self.copy_log.leader)

    def recreate(self, records: int) -> None:
        """The source topic is deleted and created again, with this number of records."""
        self.source.delete("aaa")
        self.log = self.source.make("aaa", 1).logs[0]
        self.write_singly(records)

    def require_stopped(self, lost_from: int, position: int) -> None:
        before = self.copy_count
        self.go_on(20)
        lost = f"from offset {lost_from} on it does not hold what was copied up to {position}"
        assert f"the source's log was truncated: {lost}" in self.faults()["aaa-0"]
        assert self.copy_count == before


def run_on(link: Link, work: Callable[..., Any], topic: str = "", **choice: Any) -> Any:
    """Run a command on a link of the simulation, whose operator has agreed; its result."""

    async def run() -> Any:
        chosen = operation.Choice(topic, yes=True, **choice)
        async with operation.operation(link.settings, chosen, print) as running:
            return await run_command(running, work)

    with simulated(link.source, link.destination, link.fates):
        return link.run(run())
