"""The replicator's page in a simulation, scraped as Prometheus does it: by the product's own code, on virtual time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from appliance.audit.model.progress import AuditProgress
from appliance.clock import SOURCE, now_ms
from appliance.engine.problem_log import ProblemLog
from appliance.groups.model.newest_groups import NewestGroups
from appliance.link.handle import Link
from appliance.settings.engine import Bound
from appliance.settings.values import Settings, Side
from appliance.status.model.running import Running
from appliance.status.service import Pages, watch
from appliance.status.watcher import Watcher
from deploy.monitoring.alerts import REPLICATOR_ALERTS, REPLICATOR_JOB
from deploy.monitoring.promql import metrics
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.loop import SimulatedLoop
from tests.simulation.process import Replicator

EVERY = 15
"""Seconds between two scrapes."""

TARGET = f'job="{REPLICATOR_JOB}",instance="10.2.0.5:8080",link="orange-grape"'
UP = f"up{{{TARGET}}}"

_EPOCH = 1_800_000_000
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_NEEDED = frozenset().union(*(metrics(alert.condition) for alert in REPLICATOR_ALERTS))


def on_virtual_time(loop: SimulatedLoop, patch: pytest.MonkeyPatch) -> None:
    """The time of day is that of the loop."""
    patch.setattr(SOURCE, "of_day", lambda: _EPOCH + loop.time())


@dataclass(slots=True)
class Series:
    """Samples by series, at the numbers of their scrapes."""

    scrapes: int = 0
    samples: dict[str, dict[int, float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """A sample of the scrape that is being made."""
        self.samples.setdefault(name, {})[self.scrapes] = value

    def take(self, page: bytes, target: str = TARGET) -> None:
        """The samples of a page that alerts use."""
        for line in page.decode().splitlines():
            sample = _SAMPLE.match(line)
            if sample and sample[1] in _NEEDED:
                own = f"{sample[2]}," if sample[2] else ""
                self.add(f"{sample[1]}{{{own}{target}}}", float(sample[3]))

    def values(self, name: str) -> str:
        """A series as promtool reads it; what a page has no more is stale."""
        words, before = list[str](), None
        for at in range(self.scrapes):
            value = self.samples[name].get(at)
            words.append("_" if value is None and before is None else "stale" if value is None else f"{value:.6f}")
            before = value
        return " ".join(_joined(words))


def _joined(words: list[str]) -> Iterator[str]:
    """Equal values that follow each other, as one."""
    begin = 0
    for at in range(1, len(words) + 1):
        if at == len(words) or words[at] != words[begin] or words[begin] == "stale":
            count, word = at - begin, words[begin]
            yield f"_x{count}" if word == "_" else word if count == 1 else f"{word}x{count - 1}"
            begin = at


class Console:
    """The page of the replicator that runs, made by the watcher of its own process, and scraped again and again.

    ``groups`` and ``audit`` are what the process knows of them. ``is_stuck`` keeps the watcher from looking; without
    ``has_target`` nobody scrapes.
    """

    def __init__(
        self, loop: SimulatedLoop, fates: Fates, settings: Settings, source: Brokers, destination: Brokers
    ) -> None:
        self.series = Series()
        self.groups, self.audit = NewestGroups(problem=""), AuditProgress("")
        self.is_stuck, self.has_target = False, True
        self.pages: Pages | None = None
        self._loop, self._fates, self._settings = loop, fates, settings
        self._clusters = source, destination
        self._of: Replicator | None = None

    def follow(self, process: Replicator) -> None:
        """The console ends with its process, and begins with the next one."""
        if not process.runs:
            self._of = self.pages = None
        elif process is not self._of:
            self._of = process
            self._loop.start(process.life, self._serve(process))

    @property
    def serves(self) -> bool:
        """True while it looks at both clusters again and again."""
        return self._of is not None and not self.is_stuck

    def scrape(self) -> None:
        """The page as a scrape finds it now."""
        if self.has_target:
            self.series.add(UP, self._of is not None)
        if self.has_target and self.pages is not None:
            self.series.take(self.pages._metrics().body)
        self.series.scrapes += 1

    async def _serve(self, process: Replicator) -> None:
        source, destination = self._clusters
        at_source: Any = SimulatedCluster(source, Side.SOURCE, process.life, self._fates)
        at_destination: Any = SimulatedCluster(destination, Side.DESTINATION, process.life, self._fates)
        log = ProblemLog(lambda *_: None, clock=now_ms)

        async def running() -> Running:
            if self.is_stuck:
                await self._loop.create_future()
            log.keep("", {**process.faults, **process.of_topics})
            return Running(dict(log.open))

        bytes_per_second = self._settings.engine.max_bytes_per_second
        bound = Bound(bytes_per_second, lambda: bytes_per_second)
        known = self.groups, self.audit, running
        link = Link.of(self._settings, at_source, at_destination)
        watcher = Watcher(link, self._settings, bound, *known)
        self.pages = Pages(watcher)
        await watch(watcher)
