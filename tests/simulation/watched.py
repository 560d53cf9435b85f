"""A link whose replicator's page is scraped all along, and what may befall it, each as an act that can be ended."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from appliance.engine.read import fetcher
from appliance.kafka.client.produce import ProduceExchange
from appliance.kafka.records.batch import restamp
from appliance.kafka.records.records import Record, body, pack
from appliance.settings.values import OnGap
from appliance.status import service
from tests.simulation.brokers import NODES, Brokers
from tests.simulation.log import Log
from tests.simulation.needs import Needs
from tests.simulation.process import Replicator
from tests.simulation.scrapes import EVERY, Console, on_virtual_time
from tests.simulation.stopping import Stopped
from tests.support.facts import MEMBERS

_PRODUCER = 7
_FOLLOWS_EVERY = 1.0
_WRITES_EVERY = 10.0


class Watched(Stopped):
    """A link of its own making with the topics ``aaa`` and, unless it is ``bare``, ``bbb``, of two partitions.

    Producers write to it as long as ``written`` has logs. ``restarts`` is the time after which a process that has ended
    is started again; None: never.
    """

    def __init__(
        self, patch: pytest.MonkeyPatch, on_gap: OnGap = OnGap.STOP, *, starts: bool = True, bare: bool = False
    ) -> None:
        super().__init__(patch, starts=False)
        on_virtual_time(self.loop, patch)
        patch.setattr(fetcher, "_IDLE_WAIT", 5.0)  # fewer steps
        patch.setattr(service, "_PAUSE", 5.0)
        engine = replace(self.settings.engine, on_gap=on_gap, discovery_seconds=10.0, standbys=1)
        self.destination.replicators = MEMBERS
        self.settings = replace(self.settings, engine=engine)
        with_groups = replace(self.settings, groups=replace(self.settings.groups, regex=".*"))
        self.console = Console(self.loop, self.fates, with_groups, self.source, self.destination)
        self.needs = Needs(self.source, self.destination, self.naming)
        self.pick = random.Random(0)
        self.restarts: float | None = 1.0
        self.written: list[Log] = [self.log]
        self.lives: float | None = None
        """Seconds for which each process lives; None: it does not end by itself."""
        self._ended_at: float | None = None
        self._began_at, self._sequence = 0.0, 0
        self._drives = not bare
        if not bare:
            self.destination.delete(self.positions.name)
            self.written += self.source.make("bbb", 2).logs
        self._follow()
        self._write()
        self._scrape()
        if starts:
            self.begin()

    def begin(self) -> None:
        """Start a process."""
        self.process = Replicator(self._next(), self.source, self.destination, self.fates, self.settings)
        self.process.start(None if self._drives else self.replicas())
        self._began_at, self._ended_at = self.loop.time(), None

    def restart(self) -> None:
        self.process.kill()
        self.begin()

    def minutes(self, count: float) -> None:
        """Go on."""
        self.go_on(60 * count)

    def _next(self) -> int:
        self._runs += 1
        return self._runs

    def _follow(self) -> None:
        """Start a process that has ended again, and its console with each."""
        now = self.loop.time()
        if hasattr(self.process, "task"):
            if self.lives is not None and now - self._began_at >= self.lives:
                self.process.kill()
            if self.process.runs:
                pass
            elif self._ended_at is None:
                self.process.kill()  # its console with it
                self._ended_at = now
            elif self.restarts is not None and now - self._ended_at >= self.restarts:
                self.begin()
            self.console.follow(self.process)
        self.loop.at(now + _FOLLOWS_EVERY, self.loop.world, self._follow)

    def _write(self) -> None:
        for log in self.written:
            self.write(log)
        self.loop.at(self.loop.time() + _WRITES_EVERY, self.loop.world, self._write)

    def _scrape(self) -> None:
        now, console = self.loop.time(), self.console
        console.scrape()
        self.needs.look(now, console.has_target, console.serves)
        self.loop.at(now + EVERY, self.loop.world, self._scrape)

    def hold(self, log: Log) -> None:
        """A producer opens a transaction, and writes to a source partition."""
        data = bytearray(pack([Record(0, 1_700_000_000_000, body(None, b"held"))], 0))
        restamp(data, _PRODUCER, 0, self._sequence)
        self._sequence += 1
        log.append(data, [(1_700_000_000_000, body(None, b"held"))])
        self.source.changed(log)

    def release(self, log: Log) -> None:
        """It aborts the transaction."""
        log.mark(_PRODUCER, 0, False)
        self.source.changed(log)

    # What befalls it

    def silence(self, cluster: Brokers) -> Callable[[], None]:
        """No broker of a cluster takes or answers anything, until the act is ended."""
        cluster.away.update(NODES)
        return cluster.away.clear

    def refuse_copies(self) -> Callable[[], None]:
        """The destination has too few replicas in sync, until the act is ended."""
        brokers = self.destination

        def refused(request: ProduceExchange, node: int) -> Any:
            topics = {topic for (topic, _), *_ in request.copies}
            brokers.refusal = ErrorCode.not_enough_replicas if any(t.endswith(".copy") for t in topics) else None
            try:
                return brokers._produce(request, node)
            finally:
                brokers.refusal = None

        brokers.handles(ProduceExchange, refused)
        return lambda: brokers.handles(ProduceExchange, brokers._produce)

    def take_leader(self, log: Log) -> Callable[[], None]:
        """A source partition has no leader, until the act is ended."""
        before = log.leader
        self.source.lead(log, -1)
        return lambda: self.source.lead(log, before)
