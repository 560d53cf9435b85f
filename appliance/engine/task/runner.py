"""The work of one task: the lanes of its newest assignment, each in its own asyncio task. Independent of Spark."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from appliance.engine.control.assignment import Assignment, CopySums, Notice, Report
from appliance.engine.model.chunk import Ledger
from appliance.engine.read.source_reader import SourceReader
from appliance.engine.write.lane import Lane
from appliance.engine.write.lane_runner import LaneRunner
from appliance.engine.write.transformation import Transform
from appliance.errors import ApplianceError, Superseded
from appliance.kafka.client.interface import Cluster
from appliance.link.client.origins import Origins
from appliance.link.model.checkpoint import Owner
from appliance.link.model.naming import Naming
from appliance.settings.values import EngineSettings

Transforming = Callable[
    [Callable[[str, ApplianceError | None], None]], contextlib.AbstractAsyncContextManager[Transform]
]
"""Gives what the records pass, such as SQL, while a block runs; the callable is told its problems."""

_BEAT = 5.0
"""Interval of an idle task's heartbeats, in seconds."""


@dataclass(frozen=True, slots=True)
class _Running:
    """A lane that copies, until ``stopping``."""

    runner: LaneRunner
    stopping: asyncio.Event
    task: asyncio.Task[None]


@dataclass(eq=False)
class TaskRunner:
    """Copies with the lanes of the newest assignment; made and run once, in one event loop.

    The lanes leave ``owner`` as their name at the destination. ``report`` is called with their problems, and
    periodically with the sums of their copies. ``transforming`` gives what the records pass, if there is something.
    """

    source: Cluster
    destination: Cluster
    naming: Naming
    engine: EngineSettings
    owner: Owner
    report: Callable[[Report], None]
    transforming: Transforming | None = None
    stop_seconds: float = 10.0
    """Time for a transaction to end after a stop: with Spark's end it fits into the 30 s that Docker gives.

    The next start aborts a transaction that was cut off, as after a kill.
    """
    _ledger: Ledger = field(init=False, default_factory=Ledger)
    _assignment: Assignment = field(init=False, default_factory=Assignment)
    _running: dict[int, _Running] = field(init=False, default_factory=dict)
    _ending: dict[asyncio.Task[None], int] = field(init=False, default_factory=dict)
    _transform: Transform | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._origins = Origins(self.source) if self.naming.sharing.tells_origins else None
        self._names = Origins(self.destination)
        self._reader = SourceReader(self.source, self._tell, self._origins)
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, assignments: AsyncIterator[Assignment]) -> None:
        """Copy until the assignments end; finishes open transactions, however it ends.

        Raises:
            Superseded: another try of this task took a lane: one of the two has to end.
            ApplianceError: the error of the assignments.
        """
        async with contextlib.AsyncExitStack() as stack:
            if self.transforming is not None:
                self._transform = await stack.enter_async_context(self.transforming(self._tell))
            await self._run(assignments)

    async def _run(self, assignments: AsyncIterator[Assignment]) -> None:
        following = asyncio.create_task(self._follow(assignments), name="assignments")
        summing = asyncio.create_task(self._sum_up(), name="summing")
        beating = asyncio.create_task(self._beat(), name="beating")
        await asyncio.wait([following, self._failed], return_when=asyncio.FIRST_COMPLETED)
        for task in (following, summing, beating):
            task.cancel()
        for lane in list(self._running):
            self._stop(lane)
        await asyncio.gather(following, summing, beating, *self._ending, return_exceptions=True)
        await self._reader.close()
        self._report_copied()
        if self._failed.done():
            self._failed.result()
        following.result()

    async def _follow(self, assignments: AsyncIterator[Assignment]) -> None:
        async for assignment in assignments:
            self._apply(assignment)

    def _apply(self, assignment: Assignment) -> None:
        """Begin, change and stop lanes; unchanged lanes are not disturbed."""
        before, self._assignment = self._assignment.lanes, assignment
        self._reader.bound(assignment.bytes_per_second)
        if self._origins is not None:
            self._origins.topic_id = assignment.producers
        for lane in before.keys() - assignment.lanes.keys():
            self._stop(lane)
        for lane, replicas in assignment.lanes.items():
            if lane not in self._running:
                self._begin(lane)
            if replicas != before.get(lane):
                self._running[lane].runner.assign(replicas, assignment.starts)

    def _begin(self, lane: int) -> None:
        timeout, layout = self.engine.transaction_timeout, self._assignment.layout
        owned = Lane(lane, self.destination, self.naming, self.owner, timeout, layout, self._names)
        runner = LaneRunner(
            owned,
            self.source,
            self._reader,
            self.engine,
            self._tell,
            ledger=self._ledger,
            sql=self._transform,
            statement=self._assignment.sql,
        )
        stopping = asyncio.Event()
        before = [task for task, number in self._ending.items() if number == lane]
        work = self._run_lane(runner, stopping, before)
        self._running[lane] = _Running(runner, stopping, asyncio.create_task(work, name=f"lane-{lane}"))

    def _stop(self, lane: int) -> None:
        """Let a lane finish its transaction; waits for a broker outside of one are cut off."""
        running = self._running.pop(lane)
        self._ending[running.task] = lane
        running.task.add_done_callback(self._ending.pop)
        running.stopping.set()
        running.runner.ready.set()
        if running.runner.lane.in_transaction:
            asyncio.get_running_loop().call_later(self.stop_seconds, self._cut_off, running.task)
        else:
            running.task.cancel()

    def _cut_off(self, task: asyncio.Task[None]) -> None:
        if task in self._ending:
            name = f"lane {self._ending[task]}"
            late = (
                f"{name}: a transaction has not ended {self.stop_seconds:g} s after the stop; the next start aborts it"
            )
            self._tell(name, ApplianceError(late))
            task.cancel()

    async def _run_lane(
        self, runner: LaneRunner, stopping: asyncio.Event, before: Collection[asyncio.Task[None]]
    ) -> None:
        """Run a lane once earlier stopped ones of that number have ended."""
        if before:
            await asyncio.wait(before)
        try:
            await runner.run(stopping)
        except Exception as error:  # a defect of ours: nobody would copy the lane
            self._fail(error)
        finally:
            self._reader.forget(runner.replicas)

    def _tell(self, subject: str, error: ApplianceError | None) -> None:
        if isinstance(error, Superseded):
            self._fail(error)
        else:
            self.report(Notice(subject, str(error or ""), type(error).__name__ if error else ""))

    def _fail(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    async def _sum_up(self) -> None:
        while True:
            await asyncio.sleep(self.engine.summary_seconds)
            self._report_copied()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            self.report(CopySums.of(Ledger()))

    def _report_copied(self) -> None:
        copied = self._ledger.take()
        if copied.partitions:
            self.report(CopySums.of(copied))
