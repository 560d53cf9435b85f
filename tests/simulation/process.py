"""A replicator's process without Spark: the engine's own lanes and reader, on clusters in memory."""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from appliance.errors import ApplianceError, Fenced
from appliance.link.model.checkpoint import Owner, StartOffsets
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica, lanes_of
from appliance.link.model.states import LaneState
from appliance.replicator.discovery import TopicDiscovery
from appliance.replicator.establish import Establishing
from appliance.replicator.read.source_reader import SourceReader
from appliance.replicator.write.lane import Lane
from appliance.replicator.write.lane_runner import LaneRunner
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.values import OnGap, Settings, Side, Start
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.loop import Life
from tests.support.settings import REQUIRED

Answer = TypeVar("Answer")

TRANSACTION_TIMEOUT = 4.0
_RETRY = 0.1


@functools.cache
def settings(link: str, on_gap: OnGap, start: Start, lanes: int) -> Settings:
    """What a setenv.sh of a link says."""
    names = {"SOURCE_CLUSTER_ID": link, "SOURCE_ROUTE": "direct", "REPLICA_TOPICS_SOURCE_REGEX": ".*"}
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
        self.task: asyncio.Task[None]
        self._number = number
        self._settings = known
        self._naming = Naming.of(known)
        self._fates = fates
        self._source = SimulatedCluster(source, Side.SOURCE, self.life, fates)
        self._destination = SimulatedCluster(destination, Side.DESTINATION, self.life, fates)
        self._lanes = known.engine.lanes
        self._starts: Mapping[str, StartOffsets] = {}
        self._runners: dict[int, LaneRunner] = {}
        self._reader: SourceReader
        self._stopping: asyncio.Event  # of the runners
        self._ending: asyncio.Event

    @property
    def runs(self) -> bool:
        return self.life.alive and not self.task.done()

    def kill(self) -> None:
        """As by SIGKILL; what is on its way goes on."""
        self.life.alive = False

    def start(self, replicas: tuple[Replica, ...] | None) -> None:
        """Copy these; None: make the link, and copy what there is, as the driver does."""
        self.task = self._fates.loop.start(self.life, self._run(replicas))

    async def _run(self, replicas: tuple[Replica, ...] | None) -> None:
        self._stopping, self._ending = asyncio.Event(), asyncio.Event()
        self._reader = SourceReader(self._source, self._notice)
        try:
            if replicas is not None:
                self._assign(replicas)
                await self._copy()
            else:
                await self._drive()
        except ApplianceError as error:
            self._end(error)
        self._fates.note("ends:", str(self.ended))

    async def _drive(self) -> None:
        """Make the link, and look for topics again and again; stop the lanes for a moment whenever there is news."""
        establishing = Establishing(self._settings, self._source, self._destination, self.life.name)
        established = await self._insist(establishing.establish)
        self._lanes, self._number, self._starts = established.lanes, established.generation, established.starts
        discovery = TopicDiscovery(self._source, self._destination, self._naming, self._settings.topics)
        copied: tuple[Replica, ...] = ()
        copying: asyncio.Task[None] | None = None
        while not self._ending.is_set():
            found = await self._insist(discovery.look)
            if found.replicas != copied or copying is None or copying.done():
                if copying is not None:
                    self._stop()
                    await copying
                copied, self._stopping = found.replicas, asyncio.Event()
                self._assign(copied)
                copying = asyncio.create_task(self._copy())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.engine.discovery_seconds):
                    await self._ending.wait()
        if copying is not None:
            self._stop()
            await copying

    def _assign(self, replicas: tuple[Replica, ...]) -> None:
        dealt = lanes_of(replicas, self._lanes)
        for index in [index for index in self._runners if index not in dealt]:
            self._reader.forget(self._runners.pop(index).replicas)
        for index, owned in dealt.items():
            runner = self._runners.get(index)
            if runner is None:
                owner = Owner(self.life.name, "worker", "host", 0, self._number)
                timeout = self._settings.engine.transaction_timeout
                lane = Lane(index, self._destination, self._naming, owner, timeout)
                runner = LaneRunner(
                    lane, self._source, self._destination, self._reader, self._settings.engine, self._notice
                )
                self._runners[index] = runner
            runner.assign(owned, self._starts)

    async def _copy(self) -> None:
        await asyncio.gather(*(runner.run(self._stopping) for runner in self._runners.values()))
        self._runners = {n: r for n, r in self._runners.items() if r.lane.state is not LaneState.FENCED}

    def _stop(self) -> None:
        self._stopping.set()
        for runner in self._runners.values():
            runner.ready.set()

    def _end(self, error: ApplianceError) -> None:
        self.ended = self.ended or error
        self._ending.set()
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
