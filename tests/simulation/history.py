"""One history: all that happens to a link, decided by one seed, on a clock that does not wait."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from appliance.link.model.replicas import Replica
from tests.simulation.administration import Administration
from tests.simulation.brokers import NODES, Brokers
from tests.simulation.client import Fates
from tests.simulation.coordinator import Transaction, undecided
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.loop import SimulatedLoop
from tests.simulation.process import NAMING, TRANSACTION_TIMEOUT, Replicator
from tests.simulation.workload import Workload

FAULTS = ("requests", "crashes", "rivals", "leaders")
"""What can go wrong; a seed chooses among them."""

_CAUGHT_UP_IN = 300.0
"""Virtual seconds within which everything must be copied once nothing goes wrong any more."""

_EPOCH = 1_800_000_000
_STEPS_MAX = 300_000


@dataclass(slots=True)
class Outcome:
    """What a history came to: ``failure`` is empty when all held."""

    seed: int
    failure: str
    trace: list[tuple[Any, ...]] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0
    commits: int = 0
    records: int = 0

    def lines(self) -> list[str]:
        """The trace, for people."""
        return [f"{when:10.4f} {who:8} {' '.join(map(str, what))}" for when, who, *what in self.trace]


class History:
    """A link, its clusters, its processes and what befalls them."""

    def __init__(self, seed: int, faults: tuple[str, ...] = FAULTS) -> None:
        self.seed = seed
        self.chance = chance = random.Random(seed)
        self.loop = SimulatedLoop(chance)
        self.fates = Fates(self.loop, chance)
        self.faults = {fault for fault in faults if chance.random() < 0.6}
        self.invariants = Invariants(NAMING.positions_topic, NAMING.suffix)
        self.source = Brokers("orange", self._later, lambda _: None)
        self.destination = Brokers("grape", self._later, self._committed)
        Administration(self.source)
        Administration(self.destination)
        self.workload = Workload(self.source, chance)
        self.lanes = chance.choice((1, 1, 2))
        self.processes: list[Replicator] = []
        self.violation: Violation | None = None

    def _later(self, reason: str, act: Callable[[], None]) -> None:
        if reason == "transaction timeout":
            delay = TRANSACTION_TIMEOUT
        else:
            delay = self.chance.random() * (1.0 if self.chance.random() < 0.05 else 0.005)
        self.loop.at(self.loop.time() + delay, self.loop.world, act)

    def _committed(self, transaction: Transaction) -> None:
        try:
            self.invariants.committed(transaction)
        except Violation as violation:
            self.violation = self.violation or violation

    def run(self) -> Outcome:
        """Play it."""
        random.seed(self.seed)
        time_ns, time.time_ns = time.time_ns, lambda: int((_EPOCH + self.loop.time()) * 1e9)  # type: ignore[assignment]
        failure = ""
        try:
            self._play()
        except AssertionError as error:
            failure = f"{type(error).__name__}: {error}"
        finally:
            time.time_ns = time_ns
            self.loop.close()
        return Outcome(
            self.seed,
            failure,
            self.fates.trace,
            self.loop.steps,
            self.loop.time(),
            self.invariants.commits,
            self.workload.written,
        )

    def _play(self) -> None:
        self._make_link()
        self._start_process()
        self._schedule()
        end = 1.5
        self._run_while(lambda: self.loop.time() < end)
        self._calm()
        limit = self.loop.time() + _CAUGHT_UP_IN
        self._run_while(lambda: not self._done() and self.loop.time() < limit)
        if not self._done():
            faults = {p.life.name: {k: str(v) for k, v in p.faults.items()} for p in self.processes if p.runs}
            raise Violation(f"not caught up after {_CAUGHT_UP_IN:g} s: {self.invariants.behind()}; {faults}")
        self.invariants.at_the_end(self.destination)

    def _run_while(self, wanted: Callable[[], bool]) -> None:
        start = self.loop.steps

        def goes_on() -> bool:
            if self.loop.steps - start > _STEPS_MAX:
                raise Violation(f"more than {_STEPS_MAX} steps: something spins")
            return self.violation is None and wanted()

        self.loop.run_while(goes_on)
        if self.violation is not None:
            raise self.violation
        for process in self.processes:
            if process.life.alive and process.task.done() and (error := process.task.exception()):
                raise Violation(f"{process.life.name} ended by {error!r}") from error

    def _make_link(self) -> None:
        chance = self.chance
        self.destination.make(NAMING.positions_topic, self.lanes)
        replicas = []
        for name in ("orders", "payments")[: chance.choice((1, 1, 2))]:
            topic = self.source.make(name, chance.choice((1, 2)))
            copy = self.destination.make(NAMING.destination(name), len(topic.logs))
            for log in topic.logs:
                self.invariants.watch(log)
                replicas.append(Replica(name, log.number, copy.name, topic.id, copy.id))
        self.replicas = tuple(replicas)

    def _start_process(self) -> Replicator:
        process = Replicator(len(self.processes) + 1, self.source, self.destination, self.fates, self.lanes)
        self.processes.append(process)
        self.fates.note("start of", process.life.name)
        process.start(self.replicas, {})
        return process

    def _schedule(self) -> None:
        chance, at = self.chance, self._at
        for _ in range(chance.randint(4, 12)):
            at(1.5 * chance.random(), self._write)
        for _ in range(chance.randint(2, 6)):
            at(1.5 * chance.random(), lambda: self.workload.decide())
        if "requests" in self.faults:
            self.fates.rate = chance.choice((0.01, 0.03, 0.1))
        if "crashes" in self.faults:
            for _ in range(chance.randint(1, 3)):
                at(1.5 * chance.random(), self._crash)
        if "rivals" in self.faults:
            at(1.5 * chance.random(), self._rival)
        if "leaders" in self.faults:
            self.fates.lag = 0.3
            for _ in range(chance.randint(1, 4)):
                at(1.5 * chance.random(), self._move_leader)

    def _at(self, when: float, act: Callable[[], Any]) -> None:
        self.loop.at(when, self.loop.world, act)

    def _write(self) -> None:
        self.workload.write(self.chance.choice(list(self.source.logs())))

    def _crash(self) -> None:
        running = [process for process in self.processes if process.runs]
        if running:
            process = self.chance.choice(running)
            self.fates.note("kill", process.life.name)
            process.kill()
            self._at(self.loop.time() + 0.3 * self.chance.random(), self._start_process)

    def _rival(self) -> None:
        self._start_process()

    def _move_leader(self) -> None:
        cluster = self.chance.choice((self.source, self.destination))
        log = self.chance.choice(list(cluster.logs()))
        self.fates.note("another leader of", cluster.name, log)
        cluster.lead(log, NODES[0] + NODES[1] - log.leader)

    def _calm(self) -> None:
        """Nothing goes wrong any more, and all of the source is decided."""
        self.fates.note("calm")
        self.fates.rate = self.fates.lag = 0.0
        while self.workload.decide():
            pass
        if not any(process.runs for process in self.processes):
            self._start_process()

    def _done(self) -> bool:
        return not self.invariants.behind() and not undecided(self.destination.coordinator.transactions.values())
