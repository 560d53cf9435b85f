"""One history of a total order: all that happens to its clusters, decided by one seed, on a clock that does not wait.

``python -m tests.simulation.order_history FIRST COUNT [--faults a,b] [--trace]`` prints the first that fails.
"""

import argparse
import contextlib
import random
import sys
from collections.abc import Callable, Collection

from tests.simulation.client import Fates
from tests.simulation.coordinator import undecided
from tests.simulation.history import STEPS_MAX, TAIL_BYTES, Outcome, failure_of
from tests.simulation.invariants import Violation
from tests.simulation.loop import SimulatedLoop
from tests.simulation.order_log_misfortunes import DELETED, GROWN, LOSSES, OLD_COPIES, REMADE, RETENTION
from tests.simulation.order_misfortunes import (
    AWAY,
    COORDINATORS,
    CUTS,
    DEATHS,
    DUELS,
    KILLS,
    LATE,
    LATE_BY,
    LEADERS,
    MAJORITY,
    MOVES,
    REQUESTS,
    RIVALS,
    TRAPS,
    USURPERS,
    WISHES,
    OrderMisfortunes,
)
from tests.simulation.order_world import OrderWorld
from tests.simulation.runner import main

LIKELY = {
    KILLS: 0.5,
    CUTS: 0.5,
    REQUESTS: 0.5,
    RIVALS: 0.3,
    LEADERS: 0.3,
    MOVES: 0.6,
    DUELS: 0.3,
    USURPERS: 0.6,
    DEATHS: 0.4,
    TRAPS: 0.4,
    LATE: 0.1,
    MAJORITY: 0.3,
    AWAY: 0.2,
    RETENTION: 0.15,
    OLD_COPIES: 0.15,
    GROWN: 0.15,
    REMADE: 0.1,
    LOSSES: 0.15,
    DELETED: 0.1,
    COORDINATORS: 0.2,
    WISHES: 0.3,
}
"""A seed chooses among them."""

FAULTS = tuple(LIKELY)
_EVENTFUL = 12.0
_CAUGHT_UP_IN = 200.0
_SHOTS = 14
_SINGLE = 8
"""In each of so many histories all partitions of a topic have one order."""


class OrderHistory:
    """Clusters with one order, and what befalls them."""

    def __init__(self, seed: int, faults: Collection[str] | None = None, clusters: int = 0) -> None:
        """``faults`` are those that befall it; None: by chance."""
        self.seed = seed
        self.chance = random.Random(seed)
        self.loop = SimulatedLoop(self.chance)
        self.fates = Fates(self.loop, self.chance)
        by_chance = {fault for fault in FAULTS if self.chance.random() < LIKELY[fault]}
        self.faults = by_chance if faults is None else set(faults)
        if WISHES in self.faults:
            self.faults -= {MAJORITY, DELETED}  # of few members a single one may be missed
        size = clusters or self.chance.choice((2, 3, 3, 3, 4, 5))
        lanes, single = self.chance.choice((1, 1, 2)), seed % _SINGLE == 0
        self.world = OrderWorld(self.chance, self.loop, self.fates, size, lanes, single=single)
        self.misfortunes = OrderMisfortunes(self.world)
        self.tail_bytes = self.chance.choice(TAIL_BYTES)

    def run(self) -> Outcome:
        """Play it."""
        failure = failure_of(self._play, contextlib.nullcontext(), self.loop, self.seed, self.tail_bytes)
        written = sum(workload.written % 1_000_000 for workload in self.world.workloads.values())
        return Outcome(self.seed, failure, self.fates.trace, self.loop.steps, self.world.commits, written)

    def _play(self) -> None:
        world, chance = self.world, self.chance
        self.fates.note("clusters", len(world.names), "faults:", *sorted(self.faults))
        world.make_topic("orders", chance.choice((1, 2)))
        late = chance.choice(world.names[1:]) if LATE in self.faults and len(world.names) > 2 else None
        for name in world.names:
            if name != late:
                self.loop.at(chance.random(), self.loop.world, world.start, name)
        self._write()
        for _ in range(_SHOTS):
            self.loop.at(1 + chance.random() * (_EVENTFUL - 1), self.loop.world, self._befall)
        self._tick()
        self._run_while(lambda: self.loop.time() < _EVENTFUL)
        if MAJORITY in self.faults and len(world.names) > 2 and not world.damaged and late is None:
            self._go_on_without(chance.choice(world.names))
        self._calm(late)
        self._settle(self._undone)
        world.check(whole=True)
        for name in world.names:
            if name not in world.damaged:
                task = self.loop.start(self.loop.world, world.check_maps(name))
                self._run_while(lambda: not task.done())  # noqa: B023
                task.result()

    def _go_on_without(self, missing: str) -> None:
        """One cluster is lost: all others meet in one order of their records, whichever was home."""
        world = self.world
        others = [name for name in world.names if name != missing]
        self.fates.note("lost:", missing)
        world.down.add(missing)
        if missing in world.beside:
            world.kill(missing)
        self._be_well(others)
        for name in others:
            world.cut(name, missing)
        self._settle(lambda: world.unsettled(*others))
        world.down.clear()
        world.start(missing)

    def _settle(self, undone: Callable[[], list[str]]) -> None:
        limit = self.loop.time() + _CAUGHT_UP_IN
        self._run_while(lambda: bool(undone()) and self.loop.time() < limit)
        if left := undone():
            faults = {
                each.life.name: {k: str(v) for k, v in each.faults.items()} for each in self.world.beside.values()
            }
            raise Violation(f"R: not caught up after {_CAUGHT_UP_IN:g} s: {left}; {faults}")

    def _write(self) -> None:
        if self.loop.time() < _EVENTFUL:
            self.world.write()
            self.loop.at(self.loop.time() + self.chance.random() * 0.15, self.loop.world, self._write)

    def _befall(self) -> None:
        self.misfortunes.befall(self.faults)

    def _calm(self, late: str | None) -> None:
        """From now on all goes well, and everybody is there, the ``late`` one much later."""
        self._be_well(self.world.names)
        if self.world.damaged:  # the operator moves the order to a cluster that is well
            well = [name for name in self.world.names if name not in self.world.damaged and name in self.world.beside]
            self.loop.at(self.loop.time() + 2, self.loop.world, self.misfortunes.acts[MOVES], self.chance.choice(well))
        if late is not None and late not in self.world.beside:
            until = self.loop.time() + LATE_BY
            self._run_while(lambda: self.loop.time() < until)
            self.world.start(late)

    def _be_well(self, names: Collection[str]) -> None:
        world = self.world
        self.fates.calm()
        world.mend()
        world.decide_all()
        for brokers in world.brokers.values():
            brokers.away.clear()
        for name in names:
            beside = world.beside.get(name)
            if beside is not None:
                beside.life.trap = None
                if not beside.life.alive or beside.task.done():
                    world.start(name)

    def _undone(self) -> list[str]:
        world = self.world
        open_logs = [str(log) for brokers in world.brokers.values() for log in brokers.logs() if log.open]
        undecided_now = any(undecided(brokers.coordinator.transactions.values()) for brokers in world.brokers.values())
        return [*world.unsettled(), *open_logs, *(["undecided"] if undecided_now else [])]

    def _tick(self) -> None:
        """Let time go on when every process has ended.

        What was to befall a home may have its producers write after all has got calm: they end their transactions, too.
        """
        if self.loop.time() >= _EVENTFUL:
            self.world.decide_all()
        self.loop.at(self.loop.time() + 0.5, self.loop.world, self._tick)

    def _run_while(self, wanted: Callable[[], bool]) -> None:
        start = self.loop.steps

        def goes_on() -> bool:
            if self.world.violation is not None:
                return False
            if self.loop.steps - start > 4 * STEPS_MAX:
                raise Violation("too many steps: something spins")
            return wanted()

        self.loop.run_while(goes_on, 15)
        if self.world.violation is not None:
            raise self.world.violation
        for beside in self.world.beside.values():
            if beside.life.alive and beside.task.done() and (error := beside.task.exception()):
                raise Violation(f"{beside.life.name} ended by {error!r}") from error
        if self.loop.defects:
            raise Violation(f"a defect: {self.loop.defects[0]}")


def first_failure(first: int, count: int, faults: Collection[str] | None = None, clusters: int = 0) -> Outcome | None:
    """The first of so many histories in which something does not hold; None when all hold."""
    for seed in range(first, first + count):
        outcome = OrderHistory(seed, faults, clusters).run()
        if outcome.failure:
            return outcome
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--clusters", type=int, default=0)
    sys.exit(main(__doc__, FAULTS, parser, lambda chosen, seed, faults: OrderHistory(seed, faults, chosen.clusters)))
