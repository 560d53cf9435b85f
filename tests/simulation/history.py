"""One history: all that happens to a link, decided by one seed, on a clock that does not wait."""

import functools
import gc
import logging
import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from appliance.errors import LinkRefused
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica
from appliance.settings.values import OnGap, Start
from tests.simulation.administration import Administration
from tests.simulation.brokers import NODES, Brokers
from tests.simulation.client import Fates
from tests.simulation.coordinator import Transaction, undecided
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.log import Log
from tests.simulation.loop import SimulatedLoop
from tests.simulation.process import TRANSACTION_TIMEOUT, Replicator, settings
from tests.simulation.workload import Workload

REQUESTS, CRASHES, RIVALS, LEADERS, LOSSES, RETENTION, LINK, TOPICS, REMADE, POSITIONS, OTHERS = FAULTS = (
    "requests",
    "crashes",
    "rivals",
    "leaders",
    "losses",
    "retention",
    "link",
    "topics",
    "remade",
    "positions",
    "others",
)
"""What can go wrong; a seed chooses among them. Those from ``link`` on need a link that the engine itself makes."""

_LIKELY = {REQUESTS: 0.6, CRASHES: 0.6, RIVALS: 0.4, LEADERS: 0.4, LOSSES: 0.1, RETENTION: 0.2, LINK: 0.15}
_LIKELY |= {TOPICS: 0.5, REMADE: 0.3, POSITIONS: 0.15, OTHERS: 0.3}

_EVENTFUL = 1.5
"""Virtual seconds in which things go wrong."""

_CAUGHT_UP_IN = 300.0
"""Virtual seconds within which everything must be copied once nothing goes wrong any more."""

_OPERATOR_AFTER = 8.0
_RESTARTED_AFTER = 0.3
_EPOCH = 1_800_000_000
_STEPS_MAX = 200_000
_SELDOM = 15
"""It is looked whether all is done at each sixteenth step."""


@dataclass(slots=True)
class Outcome:
    """What a history came to: ``failure`` is empty when all held."""

    seed: int
    failure: str
    trace: list[tuple[Any, ...]] = field(default_factory=list)
    steps: int = 0
    commits: int = 0
    records: int = 0

    def lines(self) -> list[str]:
        """The trace, for people."""
        return [f"{when:10.4f} {who:8} {' '.join(map(str, what))}" for when, who, *what in self.trace]


class History:
    """A link, its clusters, its processes and what befalls them."""

    def __init__(self, seed: int, faults: Collection[str] | None = None) -> None:
        """``faults`` are those that befall it; None: by chance."""
        self.seed = seed
        self.chance = chance = random.Random(seed)
        self.loop = SimulatedLoop(chance)
        self.fates = Fates(self.loop, chance)
        by_chance = {fault for fault in FAULTS if chance.random() < _LIKELY[fault]}
        self.faults = by_chance if faults is None else set(faults)
        self.source = Brokers("orange", self._later, lambda _: None)
        self.destination = Brokers("grape", self._later, self._committed)
        Administration(self.destination)
        Administration(self.source)
        self.lanes = chance.choice((1, 1, 2))
        self.on_gap = chance.choice((OnGap.STOP, OnGap.RECORD, OnGap.RECORD))
        self.link = LINK in self.faults
        start = chance.choice((Start.EARLIEST, Start.LATEST)) if self.link else Start.EARLIEST
        self.settings = settings("orange", self.on_gap, start, self.lanes)
        self.naming = Naming.of(self.settings)
        self.invariants = Invariants(self.naming, self.destination)
        self.workload = Workload(self.source, chance)
        self.processes: list[Replicator] = []
        self.others: list[Replicator] = []
        self.replicas: tuple[Replica, ...] | None = None
        self.lost: set[Log] = set()
        self.may_stop = self.damaged = False
        self.violation: Violation | None = None

    def run(self) -> Outcome:
        """Play it."""
        random.seed(self.seed)
        time_ns, time.time_ns = time.time_ns, lambda: int((_EPOCH + self.loop.time()) * 1e9)  # type: ignore[assignment]
        failure = ""
        logging.disable(logging.CRITICAL)
        gc.disable()
        try:
            self._play()
        except AssertionError as error:
            failure = f"{type(error).__name__}: {error}"
        finally:
            time.time_ns = time_ns
            logging.disable(logging.NOTSET)
            gc.enable()
            self.loop.close()
        return Outcome(
            self.seed, failure, self.fates.trace, self.loop.steps, self.invariants.commits, self.workload.written
        )

    def _play(self) -> None:
        self.fates.note("faults:", *sorted(self.faults), self.on_gap, self.settings.topics.start)
        self._make_topics()
        self._start_process()
        self._schedule()
        self._run_while(lambda: self.loop.time() < _EVENTFUL)
        self._calm()
        limit = self.loop.time() + _CAUGHT_UP_IN
        self._run_while(lambda: not self._done() and self.loop.time() < limit)
        if not self._done():
            faults = {p.life.name: {k: str(v) for k, v in p.faults.items()} for p in self.processes if p.runs}
            raise Violation(f"not caught up after {_CAUGHT_UP_IN:g} s: {self._unsettled()}; {faults}")
        if not self._refused():
            self.invariants.at_the_end(self.lost)

    def _run_while(self, wanted: Callable[[], bool]) -> None:
        loop, start = self.loop, self.loop.steps

        def goes_on() -> bool:
            if self.violation is not None:
                return False
            if loop.steps & _SELDOM:
                return True
            if loop.steps - start > _STEPS_MAX:
                raise Violation(f"more than {_STEPS_MAX} steps: something spins")
            return wanted()

        self.loop.run_while(goes_on)
        if self.violation is not None:
            raise self.violation
        for process in [*self.processes, *self.others]:
            if process.life.alive and process.task.done() and (error := process.task.exception()):
                raise Violation(f"{process.life.name} ended by {error!r}") from error

    def _done(self) -> bool:
        if self._refused():
            return True
        transactions = self.destination.coordinator.transactions.values()
        alone = sum(process.runs for process in self.processes) == 1  # the older of two stops (invariant B)
        return alone and not self._unsettled() and not undecided(transactions)

    def _unsettled(self) -> list[str]:
        return self.invariants.unsettled(self.lost, self.may_stop)

    def _refused(self) -> bool:
        """The link was damaged, and the process that started last has said so (invariant H)."""
        return self.damaged and isinstance(self.processes[-1].ended, LinkRefused)

    def _later(self, reason: str, act: Callable[[], None]) -> None:
        delay = TRANSACTION_TIMEOUT
        if reason == "marker":
            delay = self.chance.random() * (1.0 if self.chance.random() < 0.05 else 0.005)
        self._at(self.loop.time() + delay, act)

    def _committed(self, transaction: Transaction) -> None:
        try:
            self.invariants.committed(transaction)
        except Violation as violation:
            self.violation = self.violation or violation

    def _at(self, when: float, act: Callable[[], Any]) -> None:
        self.loop.at(when, self.loop.world, act)

    def _make_topics(self) -> None:
        chance = self.chance
        for name in ("orders", "payments")[: chance.choice((1, 1, 2))]:
            self.invariants.watch(self.source.make(name, chance.choice((1, 2))))
        if not self.link:
            self.destination.make(self.naming.positions_topic, self.lanes)
            self.replicas = tuple(
                Replica(topic.name, log.number, copy.name, topic.id, copy.id)
                for topic in self.source.topics.values()
                for copy in [self.destination.make(self.naming.destination(topic.name), len(topic.logs))]
                for log in topic.logs
            )

    def _start_process(self) -> None:
        process = Replicator(len(self.processes) + 1, self.source, self.destination, self.fates, self.settings)
        self.processes.append(process)
        self.fates.note("start of", process.life.name)
        process.start(self.replicas)

    def _schedule(self) -> None:
        self._often(4, 12, self._write)
        self._often(2, 6, self.workload.decide)
        if REQUESTS in self.faults:
            self.fates.rate = self.chance.choice((0.01, 0.03, 0.1))
        if CRASHES in self.faults:
            self._often(1, 3, self._crash)
        if RIVALS in self.faults:
            self._often(1, 1, self._start_process)
        if LEADERS in self.faults:
            self.fates.lag = 0.3
            self._often(1, 4, self._move_leader)
        if LOSSES in self.faults:
            self._often(1, 2, self._lose)
        if RETENTION in self.faults:
            self.may_stop = self.may_stop or self.on_gap is OnGap.STOP
            self._often(1, 2, self._delete_old)
        if self.link:
            self._schedule_for_link()

    def _schedule_for_link(self) -> None:
        if TOPICS in self.faults:
            self._often(1, 2, self._new_partitions)
        if REMADE in self.faults:
            self.may_stop = self.may_stop or self.on_gap is OnGap.STOP
            self._often(1, 1, self._remake)
        if POSITIONS in self.faults and REMADE not in self.faults:  # without copies it would be a new link
            self._often(1, 1, self._damage_positions)
        if OTHERS in self.faults and not self.faults & {TOPICS, REMADE}:
            self._often(1, 1, self._start_other)

    def _often(self, least: int, most: int, act: Callable[[], Any]) -> None:
        for _ in range(self.chance.randint(least, most)):
            self._at(_EVENTFUL * self.chance.random(), act)

    def _write(self) -> None:
        self.workload.write(self.chance.choice(list(self.source.logs())))

    def _crash(self) -> None:
        running = [process for process in self.processes if process.runs]
        if running:
            process = self.chance.choice(running)
            self.fates.note("kill", process.life.name)
            process.kill()
            self._at(self.loop.time() + _RESTARTED_AFTER * self.chance.random(), self._start_process)

    def _move_leader(self) -> None:
        cluster = self.chance.choice((self.source, self.destination))
        logs = list(cluster.logs())
        if not logs:
            return
        log = self.chance.choice(logs)
        self.fates.note("another leader of", cluster.name, log)
        unnoticed = self.chance.random() < 0.5
        cluster.lead(log, NODES[0] + NODES[1] - log.leader, unnoticed)
        if unnoticed:
            self._at(self.loop.time() + self.chance.random(), functools.partial(setattr, log, "former", None))

    def _lose(self) -> None:
        """An unclean election of a copy, or a lost disk (invariant J)."""
        copies = [
            log for log in self.destination.logs() if log.topic.endswith(f".{self.naming.suffix}") and log.entries
        ]
        if copies:
            log = self.chance.choice(copies)
            entry = self.chance.choice(log.entries[-6:])
            self.fates.note("loss of", log, "from", entry.base, "to", log.end)
            self.lost.add(log)
            self.invariants.losing(log, entry.base)
            log.truncate(entry.base)
            self.destination.lead(log, self.chance.choice(NODES))

    def _delete_old(self) -> None:
        log = self.chance.choice(list(self.source.logs()))
        if log.entries:
            self.invariants.current[log.topic, log.number].learn()
            log.delete_before(self.chance.choice(log.entries).base)
            self.fates.note("retention:", log, "starts at", log.start)

    def _new_partitions(self) -> None:
        topics = list(self.source.topics.values())
        if len(topics) < 3 and self.chance.random() < 0.5:
            self.invariants.watch(self.source.make(f"new-{len(topics)}", self.chance.choice((1, 2))))
        else:
            topic = self.chance.choice(topics)
            self.source.grow(topic.name, len(topic.logs) + 1)
            self.invariants.watch(topic)
        self.fates.note("topics:", *(log for log in self.source.logs()))

    def _remake(self) -> None:
        """Somebody deletes a topic and makes it anew under its name (invariant G)."""
        topic = self.chance.choice(list(self.source.topics.values()))
        if self.chance.random() < 0.5:
            for log in topic.logs:
                self.invariants.current[log.topic, log.number].learn()
            self.source.delete(topic.name)
            self.invariants.watch(self.source.make(topic.name, len(topic.logs)))
            self.fates.note("made anew:", topic.name)
        elif (copy := self.destination.topics.get(self.naming.destination(topic.name))) is not None:
            self.destination.delete(copy.name)
            self.invariants.remade.add(topic.name)
            self.fates.note("deleted:", copy.name)

    def _damage_positions(self) -> None:
        """While no replicator runs, the positions topic is deleted, or grown (invariant H)."""
        name = self.naming.positions_topic
        if name not in self.destination.topics:
            return
        for process in self.processes:
            process.kill()
        if self.chance.random() < 0.5:
            self.destination.delete(name)
        else:
            self.destination.grow(name, len(self.destination.topics[name].logs) + 1)
        self.damaged = True
        self.fates.note("damaged:", name)
        self._at(self.loop.time() + _RESTARTED_AFTER, self._start_process)

    def _start_other(self) -> None:
        """Another link, whose topics have the same names, comes with the same suffix (invariant I)."""
        if any(partition not in self.invariants.positions for partition in self.invariants.current):
            self._at(self.loop.time() + 0.1, self._start_other)  # whoever comes first has the copies
            return
        lemon = Brokers("lemon", self._later, lambda _: None)
        Administration(lemon)
        for topic in self.source.topics.values():
            for log in lemon.make(topic.name, len(topic.logs)).logs:
                Workload(lemon, self.chance).write(log)
        known = settings("lemon", self.on_gap, Start.EARLIEST, self.lanes)
        other = Replicator(1, lemon, self.destination, self.fates, known)
        self.others.append(other)
        self.fates.note("start of another link")
        other.start(None)

    def _calm(self) -> None:
        """Nothing goes wrong any more, and all of the source is decided."""
        self.fates.note("calm")
        self.fates.rate = self.fates.lag = 0.0
        while self.workload.decide():
            pass
        self._supervise()
        self._at(self.loop.time() + _OPERATOR_AFTER, self._operate)

    def _supervise(self) -> None:
        """Start the replicator again when none runs, unless its link is refused."""
        if not any(process.runs for process in self.processes) and not self._refused():
            self._start_process()
        self._at(self.loop.time() + 1.0, self._supervise)

    def _operate(self) -> None:
        """The operator does what log lines ask for: grows copies that nobody has claimed, ends hanging transactions."""
        for topic in self.source.topics.values():
            copy = self.destination.topics.get(self.naming.destination(topic.name))
            if copy is not None and len(copy.logs) < len(topic.logs):
                self.destination.grow(copy.name, len(topic.logs))
        for log in self.lost:
            for producer in list(log.open):
                log.mark(producer, log.producers[producer].epoch, committed=False)
                self.destination.changed(log)
