"""A replicator's process without Spark: the engine's own lanes and reader, on clusters in memory."""

import asyncio
import contextlib
import functools
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from appliance.commands.run.operation import Choice, Operation
from appliance.driver.discovery import TopicDiscovery
from appliance.driver.establish import Establishing
from appliance.engine.control.assignment import Assignment, Notice, Report
from appliance.engine.task.runner import TaskRunner, Transforming
from appliance.errors import ApplianceError, Fenced, LayoutChanged, LinkRefused
from appliance.kafka.protocol.metadata import Partition
from appliance.link import handle
from appliance.link.model.checkpoint import Owner, StartOffsets
from appliance.link.model.layout import Layout
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import DiscoveredTopics, Replica, lanes_of
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.values import OnGap, Settings, Side, Start
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.loop import Life
from tests.support.older_placing import place_as_an_older_release
from tests.support.settings import REQUIRED

Answer = TypeVar("Answer")

TRANSACTION_TIMEOUT = 4.0
_RETRY = 0.1


@functools.cache
def settings(link: str, on_gap: OnGap, start: Start, lanes: int, groups: str = "", fan_in: bool = False) -> Settings:
    """The settings of a link; ``groups`` matches those whose offsets follow. With ``fan_in`` it shares its copies."""
    names = {"SOURCE_CLUSTER_ID": link, "SOURCE_ROUTE": "direct", "REPLICA_TOPICS_SOURCE_REGEX": ".*"}
    names["REPLICA_GROUPS_REGEX"] = groups
    names["REPLICA_FAN_IN"] = "yes" if fan_in else "no"
    known = parse(REQUIRED | names, Role.REPLICATOR)
    engine = replace(
        known.engine,
        lanes=lanes,
        on_gap=on_gap,
        commit_interval=0.005,
        discovery_seconds=0.4,
        transaction_timeout=TRANSACTION_TIMEOUT,
    )
    return replace(known, engine=engine, topics=replace(known.topics, start=start))


class Replicator:
    """One run of the replicator, which ends by itself when it is fenced or refused; ``ended`` says why."""

    def __init__(self, number: int, source: Brokers, destination: Brokers, fates: Fates, known: Settings) -> None:
        self.life = Life(f"{source.name}-{number}")
        self.ended: ApplianceError | None = None
        self.faults: dict[str, ApplianceError] = {}
        self.of_topics: dict[str, ApplianceError] = {}
        """The problems of the driver's look for topics, by subject."""
        self.task: asyncio.Task[None]
        self.transforming: Transforming | None = None
        """The SQL that its records pass, if there is some."""
        self._number = number
        self._settings = known
        self._naming = Naming.of(known)
        self._fates = fates
        self._source = SimulatedCluster(source, Side.SOURCE, self.life, fates)
        self._destination = SimulatedCluster(destination, Side.DESTINATION, self.life, fates)
        self._layout = Layout(known.engine.lanes)
        self._starts: Mapping[str, StartOffsets] = {}
        self._assignment = Assignment()
        self._replicas: tuple[Replica, ...] = ()
        self._is_of_another_layout = False
        self._tries = itertools.count()
        self._news: asyncio.Event  # another assignment, or the end
        self._ending: asyncio.Event

    @property
    def runs(self) -> bool:
        return self.life.alive and not self.task.done()

    def kill(self) -> None:
        """End it as by SIGKILL; its requests on the way go on."""
        self.life.alive = False

    def start(self, replicas: tuple[Replica, ...] | None) -> None:
        """Copy these; None: make the link, and copy what there is, as the driver does."""
        self.task = self._fates.loop.start(self.life, self._run(replicas))

    async def _run(self, replicas: tuple[Replica, ...] | None) -> None:
        self._ending, self._news = asyncio.Event(), asyncio.Event()
        try:
            if replicas is not None:
                self.assign(replicas)
                await self._copy()
            else:
                await self._drive()
        except ApplianceError as error:
            self._end(error)
        self._fates.note("ends:", str(self.ended))

    async def _drive(self) -> None:
        """Make the link, and look for topics again and again, which the task copies that runs meanwhile."""
        establishing = Establishing(self._settings, self._link(), self.life.name)
        established = await self._insist(establishing.establish)
        self._layout, self._number, self._starts = established.layout, established.generation, established.starts
        discovery = TopicDiscovery(self._link(), self._settings.topics)
        copied: tuple[Replica, ...] = ()
        copying = asyncio.create_task(self._copy())
        while not self._ending.is_set():
            found = await self._look(discovery)
            if found.replicas != copied:
                copied = found.replicas
                self.assign(copied)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.engine.discovery_seconds):
                    await self._ending.wait()
        self._stop()
        await copying

    async def _look(self, discovery: TopicDiscovery) -> DiscoveredTopics:
        """Look for topics until there is an answer."""
        while True:
            try:
                found = await discovery.search()
            except LinkRefused:
                raise
            except ApplianceError as error:
                self._fates.note("looks again", str(error))
                self.of_topics = {"discovery": error}
                await asyncio.sleep(_RETRY)
            else:
                self.of_topics = {f"topic {name}": ApplianceError(fault) for name, fault in found.unfit.items()}
                return found

    def assign(self, replicas: tuple[Replica, ...]) -> None:
        """Have the task copy these from now on."""
        self._replicas = replicas
        lanes = lanes_of(replicas, self._layout)
        each = self._settings.engine.max_bytes_per_second
        self._assignment = Assignment(lanes, self._starts, each, layout=self._layout.number)
        self._news.set()

    async def _copy(self) -> None:
        """Run the task, and the next try of it whenever it fails, as Spark does."""
        while not self._ending.is_set():
            owner = Owner(self.life.name, f"worker-{next(self._tries)}", "host", 0, self._number)
            engine = self._settings.engine
            if self._is_of_another_layout and not await self._lay_out():
                return
            task = TaskRunner(
                self._source, self._destination, self._naming, engine, owner, self._reported, self.transforming
            )
            try:
                await task.run(self._assigned())
            except ApplianceError as error:
                self._fates.note("task fails:", str(error))
                await asyncio.sleep(_RETRY)

    async def _lay_out(self) -> bool:
        """Read the link's new layout, as the driver does; False if this run ends."""
        try:
            establishing = Establishing(self._settings, self._link(), self.life.name)
            found = await self._insist(establishing.establish)
        except ApplianceError as error:
            self._end(error)
            return False
        if owner := found.newer_owner(self.life.name, self._number):
            self._end(Fenced(f"the lanes by {owner}"))
            return False
        self._layout, self._is_of_another_layout = found.layout, False
        self.assign(self._replicas)
        return True

    def place(self, lanes: Mapping[Partition, int]) -> None:
        """Have it place partitions in these lanes by itself, as older releases do."""
        self._fates.note(self.life.name, "places", lanes)
        self._fates.loop.start(self.life, self._place(lanes))

    def _link(self) -> handle.Link:
        clusters: Any = self._source, self._destination
        return handle.Link.of(self._settings, *clusters)

    async def _place(self, lanes: Mapping[Partition, int]) -> None:
        operation = Operation(self._settings, Choice(yes=True), self._link(), self._fates.note)
        try:
            self._fates.note("placed:", await place_as_an_older_release(operation, lanes))
        except ApplianceError as error:
            self._fates.note("not placed:", str(error))
            if isinstance(error, Fenced | LinkRefused):
                return
        self._is_of_another_layout = True
        self._news.set()

    async def _assigned(self) -> AsyncIterator[Assignment]:
        """The newest assignment, and each new one, until the process is to end."""
        given: Assignment | None = None
        while not self._ending.is_set() and not self._is_of_another_layout:
            self._news.clear()
            if given is not self._assignment:
                given = self._assignment
                yield given
            await self._news.wait()

    def _reported(self, report: Report) -> None:
        if isinstance(report, Notice) and report.kind == LayoutChanged.__name__:
            self._is_of_another_layout = True
            self._news.set()
        elif isinstance(report, Notice):
            kind = Fenced if report.kind == Fenced.__name__ else ApplianceError
            self._notice(report.subject, kind(report.fault) if report.fault else None)

    def _stop(self) -> None:
        self._ending.set()
        self._news.set()

    def _end(self, error: ApplianceError) -> None:
        self.ended = self.ended or error
        self._stop()

    def _notice(self, subject: str, error: ApplianceError | None) -> None:
        self._fates.note("notice", subject, str(error) if error else "well again")
        if error is None:
            self.faults.pop(subject, None)
            return
        self.faults[subject] = error
        if type(error) is Fenced:
            self._end(error)

    async def _insist(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        while True:
            try:
                return await ask()
            except ApplianceError as error:
                if not error.retriable:
                    raise
                self._fates.note("asks again", str(error))
            await asyncio.sleep(_RETRY)
