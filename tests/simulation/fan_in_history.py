"""A history of a fan-in, decided by one seed: ``python -m tests.simulation.fan_in_history FIRST COUNT [--trace]``."""

import os
import random
import sys
from collections.abc import Callable

from tests.simulation.client import Fates
from tests.simulation.consumers import settle
from tests.simulation.fan_in import FanIn, reached
from tests.simulation.fan_in_groups import SharedGroup
from tests.simulation.history import SELDOM, STEPS_MAX, TAIL_BYTES, Outcome, failure_of
from tests.simulation.invariants import Violation
from tests.simulation.link import Link
from tests.simulation.log_misfortunes import LogMisfortunes
from tests.simulation.loop import SimulatedLoop

EVENTFUL = 2.5
"""Virtual seconds in which things go wrong; the links are made in the first of them."""

_CAUGHT_UP_IN = 40.0
_OPERATOR_AFTER = 8.0


class FanInHistory:
    """Two links, and what befalls them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.loop = SimulatedLoop(self.chance)
        self.fates = Fates(self.loop, self.chance)
        self.world = FanIn(self.chance, self.loop, self.fates)
        self.group = SharedGroup(self.world)
        self.tail_bytes = self.chance.choice(TAIL_BYTES)

    def run(self) -> Outcome:
        """Play it."""
        failure = failure_of(self._play, reached(self.world), self.loop, self.seed, self.tail_bytes)
        commits = sum(link.invariants.commits for link in self.world.links)
        return Outcome(self.seed, failure, self.fates.trace, self.loop.steps, commits, self.group.judged)

    def _play(self) -> None:
        for link in self.world.links:
            self._often(1, 1, link.start_process, 0.3)
            self._schedule(link)
        for reader in self.group.readers:
            self._often(1, 1, reader.consumers.sync, EVENTFUL)
            self._often(4, 10, reader.consume)
        self._often(0, 3, self.world.crash)
        self._often(0, 3, lambda: self.chance.choice(self.group.readers).consumers.crash())
        self._often(0, 2, self.world.retain)
        if self.chance.random() < 0.2:
            self._often(1, 1, self.world.remove)
        self.fates.disturb(self.chance.choice((0.0, 0.0, 0.01, 0.03)))
        self._run_while(lambda: self.loop.time() < EVENTFUL)
        self._calm()
        resumed, limit = self.loop.time() + 2.0, self.loop.time() + _CAUGHT_UP_IN
        self._run_while(lambda: self.loop.time() < resumed)
        self._run_while(lambda: bool(self.world.unsettled()) and self.loop.time() < limit)
        if left := self.world.unsettled():
            raise Violation(f"not caught up after {_CAUGHT_UP_IN:g} s: {left}")
        self.world.check_copies()
        settle(self.loop, self._run_while, self.group.at_rest)

    def _schedule(self, link: Link) -> None:
        logs = LogMisfortunes(link)
        self._often(6, 14, lambda: link.workload.write(self.chance.choice(list(link.source.logs()))))
        self._often(3, 8, link.workload.decide)
        self._often(0, 2, logs.move_leader)
        self._often(0, self.chance.choice((0, 0, 1)), logs.truncate)

    def _often(self, least: int, most: int, act: Callable[[], object], within: float = EVENTFUL) -> None:
        for _ in range(self.chance.randint(least, most)):
            self.loop.at(within * self.chance.random(), self.loop.world, act)

    def _calm(self) -> None:
        """End all faults, and all open transactions of the sources; the operator has what is stopped go on."""
        self.fates.note("calm")
        self.fates.calm()
        for link in self.world.links:
            for log in link.source.logs():
                link.workload.write(log)
            while link.workload.decide():
                pass
        self._supervise()
        self.world.later(2 * self.chance.random(), self.world.resume)
        self.world.later(_OPERATOR_AFTER, self.world.grow_copy)

    def _supervise(self) -> None:
        self.world.supervise()
        self.world.later(1.0, self._supervise)

    def _run_while(self, wanted: Callable[[], bool]) -> None:
        start = self.loop.steps

        def goes_on() -> bool:
            if self.loop.steps - start > STEPS_MAX:
                raise Violation(f"more than {STEPS_MAX} steps: something spins")
            return self.world.violation is None and wanted()

        self.loop.run_while(goes_on, SELDOM)
        self.world.check()
        self.group.check()


def first_failure(first: int, count: int) -> Outcome | None:
    """The first of so many histories in which something does not hold; None when all hold."""
    outcomes = (FanInHistory(seed).run() for seed in range(first, first + count))
    return next((outcome for outcome in outcomes if outcome.failure), None)


def main() -> int:
    """Play the histories of the command line; print the first that fails, or with ``--trace`` the first."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets decides, too
        os.execvpe(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    first, count = map(int, sys.argv[1:3])
    found = FanInHistory(first).run() if "--trace" in sys.argv else first_failure(first, count)
    if found is not None:
        print("\n".join([*found.lines(), f"seed {found.seed}: {found.failure}"]))
    return found is not None


if __name__ == "__main__":
    sys.exit(main())
