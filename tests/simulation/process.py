"""A replicator's process without Spark: the engine's own lanes and reader, on clusters in memory."""

import asyncio
import re

from appliance.errors import ApplianceError, Fenced
from appliance.link.model.checkpoint import Owner, StartOffsets
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica, lanes_of
from appliance.replicator.read.source_reader import SourceReader
from appliance.replicator.write.lane import Lane
from appliance.replicator.write.lane_runner import LaneRunner
from appliance.settings.secret import Secret
from appliance.settings.values import EngineSettings, OnGap, Side
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.loop import Life

NAMING = Naming("replicator-orange", "copy", re.compile(".*"), re.compile(""))
TRANSACTION_TIMEOUT = 4.0


def engine_settings(on_gap: OnGap) -> EngineSettings:
    return EngineSettings(
        2, 1, 10.0, 3.0, 0.005, 4 * 1024 * 1024, TRANSACTION_TIMEOUT, on_gap, "local[*]", "512m", Secret(""), "", 0, 0
    )


class Replicator:
    """One run of the replicator; ``fenced`` says by whom it was, which ends it."""

    def __init__(self, number: int, source: Brokers, destination: Brokers, fates: Fates, lanes: int) -> None:
        self.life = Life(f"run-{number}")
        self.number = number
        self.lanes = lanes
        self.fenced = ""
        self.fates = fates
        self.source = SimulatedCluster(source, Side.SOURCE, self.life, fates)
        self.destination = SimulatedCluster(destination, Side.DESTINATION, self.life, fates)
        self.engine = engine_settings(OnGap.STOP)
        self.runners: dict[int, LaneRunner] = {}
        self.reader: SourceReader
        self.task: asyncio.Task[None]
        self.faults: dict[str, ApplianceError] = {}
        self._stopping: asyncio.Event

    def start(self, replicas: tuple[Replica, ...], starts: dict[str, StartOffsets]) -> None:
        """Begin to copy these."""
        self.task = self.fates.loop.start(self.life, self._run(replicas, starts))

    @property
    def runs(self) -> bool:
        return self.life.alive and not self.task.done()

    def kill(self) -> None:
        """As by SIGKILL; what is on its way goes on."""
        self.life.alive = False

    def notice(self, subject: str, error: ApplianceError | None) -> None:
        self.fates.note("notice", subject, str(error) if error else "well again")
        if error is None:
            self.faults.pop(subject, None)
            return
        self.faults[subject] = error
        if type(error) is Fenced:
            self.fenced = str(error)
            self._stop()

    def _stop(self) -> None:
        self._stopping.set()
        for runner in self.runners.values():
            runner.ready.set()

    async def _run(self, replicas: tuple[Replica, ...], starts: dict[str, StartOffsets]) -> None:
        self._stopping = asyncio.Event()
        self.reader = SourceReader(self.source, self.notice)
        for index, owned in lanes_of(replicas, self.lanes).items():
            owner = Owner(self.life.name, "worker", "host", 0, self.number)
            lane = Lane(index, self.destination, NAMING, owner, self.engine.transaction_timeout)
            runner = LaneRunner(lane, self.source, self.destination, self.reader, self.engine, self.notice)
            runner.assign(owned, starts)
            self.runners[index] = runner
        await asyncio.gather(*(runner.run(self._stopping) for runner in self.runners.values()))
        await self.reader.close()
