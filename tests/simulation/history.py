"""One history: all that happens to a link, decided by one seed, on a clock that does not wait."""

import contextlib
import gc
import logging
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from appliance.engine.model import map_growth
from tests.simulation.client import Fates
from tests.simulation.consumers import settle
from tests.simulation.coordinator import undecided
from tests.simulation.faults import COMPACTION, FAULTS, GROUPS, LIKELY, LINK, RESUMES
from tests.simulation.invariants import Violation
from tests.simulation.link import Link
from tests.simulation.loop import SimulatedLoop, time_of_day
from tests.simulation.misfortunes import EVENTFUL, Misfortunes
from tests.simulation.operator_commands import simulated

_CAUGHT_UP_IN = 300.0
"""Virtual seconds within which everything must be copied once nothing goes wrong any more."""

_EPOCH = 1_800_000_000
STEPS_MAX = 200_000
_TICK = 0.5
TAIL_BYTES = (3, 12, 160)
_SEGMENT_BYTES = 24
"""So few that the maps of offsets have segments within a history, in most of them."""

SELDOM = 15
"""It is looked whether all is done at each sixteenth step."""


@dataclass(slots=True)
class Outcome:
    """The result of a history: ``failure`` is empty if all invariants held."""

    seed: int
    failure: str
    trace: list[tuple[Any, ...]] = field(default_factory=list)
    steps: int = 0
    commits: int = 0
    records: int = 0

    def lines(self) -> list[str]:
        """The trace, for people."""
        return [f"{when:10.4f} {who:8} {' '.join(map(str, what))}" for when, who, *what in self.trace]


def failure_of(
    play: Callable[[], None],
    reached: contextlib.AbstractContextManager[object],
    loop: SimulatedLoop,
    seed: int,
    tail_bytes: int,
) -> str:
    """Play a history whose clusters are ``reached`` meanwhile; what does not hold, if anything."""
    random.seed(seed)
    logging.disable(logging.CRITICAL)
    gc.disable()
    sizes = {"TAIL_BYTES": tail_bytes, "SEGMENT_BYTES": _SEGMENT_BYTES}
    try:
        with reached, mock.patch.multiple(map_growth, **sizes), time_of_day(loop, _EPOCH):
            play()
    except AssertionError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()
        loop.close()
    return ""


class History:
    """A link and its faults."""

    def __init__(self, seed: int, faults: Collection[str] | None = None) -> None:
        """``faults`` are those that befall it; None: by chance."""
        self.seed = seed
        chance = random.Random(seed)
        self.loop = SimulatedLoop(chance)
        self.fates = Fates(self.loop, chance)
        by_chance = {fault for fault in FAULTS if chance.random() < LIKELY[fault]}
        self.faults = by_chance if faults is None else set(faults)
        kind = (fault in self.faults for fault in (LINK, COMPACTION, GROUPS))
        self.link = Link(chance, self.loop, self.fates, *kind)
        self.misfortunes = Misfortunes(self.link, self.faults)
        self.tail_bytes = chance.choice(TAIL_BYTES)

    def run(self) -> Outcome:
        """Play it."""
        reached = simulated(self.link.source, self.link.destination, self.fates)
        failure = failure_of(self._play, reached, self.loop, self.seed, self.tail_bytes)
        return Outcome(
            self.seed,
            failure,
            self.fates.trace,
            self.loop.steps,
            self.link.invariants.commits,
            self.link.workload.written,
        )

    def _play(self) -> None:
        self.fates.note("faults:", *sorted(self.faults), self.link.on_gap, self.link.settings.topics.start)
        self.link.make_topics()
        self.link.start_process()
        self.misfortunes.schedule()
        self._tick()
        self._run_while(lambda: self.loop.time() < EVENTFUL)
        self.misfortunes.calm()
        limit = self.loop.time() + _CAUGHT_UP_IN
        self._run_while(lambda: not self._done() and self.loop.time() < limit)
        if not self._done():
            faults = {p.life.name: {k: str(v) for k, v in p.faults.items()} for p in self.link.processes if p.runs}
            raise Violation(f"not caught up after {_CAUGHT_UP_IN:g} s: {self._unsettled()}; {faults}")
        if not self.link.refused():
            self.link.at_rest.at_the_end()
            if GROUPS in self.faults:
                settle(self.loop, self._run_while, self.misfortunes.at_rest)
            self.misfortunes.operator.translate(at_rest=True)
            self.misfortunes.operator.status(at_rest=True)
            self._run_while(lambda: self.misfortunes.operator.is_busy)

    def _tick(self) -> None:
        """Let time go on when every process has ended."""
        self.loop.at(self.loop.time() + _TICK, self.loop.world, self._tick)

    def _run_while(self, wanted: Callable[[], bool]) -> None:
        loop, start = self.loop, self.loop.steps

        def goes_on() -> bool:
            if self.link.violation is not None:
                return False
            if loop.steps - start > STEPS_MAX:
                raise Violation(f"more than {STEPS_MAX} steps: something spins")
            return wanted()

        self.loop.run_while(goes_on, SELDOM)
        if self.link.violation is not None:
            raise self.link.violation
        for process in [*self.link.processes, *self.link.others]:
            if process.life.alive and process.task.done() and (error := process.task.exception()):
                raise Violation(f"{process.life.name} ended by {error!r}") from error
        self.misfortunes.check()

    def _done(self) -> bool:
        if self.link.refused():
            return RESUMES not in self.faults
        if self.misfortunes.operator.is_busy:
            return False
        if any(log.open for log in self.link.destination.logs()):
            return False
        transactions = self.link.destination.coordinator.transactions.values()
        alone = sum(process.runs for process in self.link.processes) == 1  # the older of two stops (invariant B)
        alone = alone or self.link.at_rest.nothing_is_copied()  # and no lane runs by which it would notice the newer
        return alone and not self._unsettled() and not undecided(transactions)

    def _unsettled(self) -> list[str]:
        return self.link.at_rest.unsettled(self.link.may_stop)
