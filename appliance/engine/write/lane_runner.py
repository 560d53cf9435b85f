"""The work of one lane: a start when it is cold, then transaction after transaction until it is stopped."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.engine.model.chunk import Ledger
from appliance.engine.problem_log import Notice, ProblemLog
from appliance.engine.read.buffer import ReadyQueue
from appliance.engine.read.source_reader import SourceReader
from appliance.engine.write.copy_watch import CopyWatch, MapCleaner
from appliance.engine.write.lane import Lane
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.engine.write.transactions import Transactions
from appliance.engine.write.transformation import Transform
from appliance.errors import (
    ApplianceError,
    CopyRefused,
    Fenced,
    LayoutChanged,
    PartitionsUnavailable,
)
from appliance.kafka.client.interface import Cluster
from appliance.link.client.retry import back_off
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.link_sql import LinkSql
from appliance.link.model.replicas import Replica
from appliance.link.model.states import LaneState
from appliance.settings.values import EngineSettings, OnGap

_NAMES = "names of lanes"
"""The subject of a lane that copies without having left its name."""

_ENDING_INTERVAL = 0.01
"""Seconds between two looks at a transaction that has to end before a stop."""

_SILENCE = 3.0
"""Idle time after which a lane checks that it still owns its transactional id, in seconds."""


@dataclass(slots=True)
class LaneRunner:
    """A lane with its source reader, its partitions, and the sums of its copies."""

    lane: Lane
    source: Cluster
    reader: SourceReader
    engine: EngineSettings
    notice: Notice
    ready: ReadyQueue = field(default_factory=ReadyQueue)
    ledger: Ledger = field(default_factory=Ledger)
    sql: Transform | None = None
    statement: LinkSql = field(default_factory=LinkSql)
    _assigned: tuple[tuple[Replica, ...], Mapping[str, StartOffsets]] | None = None
    _running: bool = False
    _failures: int = 0
    _problems: ProblemLog = field(init=False)
    _partitions: LanePartitions = field(init=False)
    _transactions: Transactions = field(init=False)
    _watch: CopyWatch = field(init=False)
    _cleaner: MapCleaner = field(init=False)

    def __post_init__(self) -> None:
        self._problems = ProblemLog(self.notice)
        self._partitions = LanePartitions(
            self.lane, self.source, self.reader, self.ready, self._problems, self.engine.on_gap is OnGap.RECORD
        )
        self._transactions = Transactions(self._partitions, self.engine, self.ledger, self.sql)
        self._watch = CopyWatch(self._partitions)
        self._cleaner = MapCleaner(self.lane)

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """The partitions that the lane copies."""
        return self._partitions.replicas

    def assign(self, replicas: Sequence[Replica], starts: Mapping[str, StartOffsets]) -> None:
        """Copy these partitions from now on; ``starts`` are the first offsets of those that existed when the link was
        made.

        A running lane does so after its current transaction.
        """
        self._assigned = tuple(replicas), starts
        self.ready.set()
        if not self._running:
            self._apply()

    def _apply(self) -> None:
        if self._assigned is not None:
            assigned, self._assigned = self._assigned, None
            self._partitions.assign(*assigned)

    async def run(self, stopping: asyncio.Event) -> None:
        """Copy until ``stopping``, which also sets ``ready``; finishes an open transaction."""
        self._running = True
        try:
            await self._look_for_others(stopping)
            await self._copy(stopping)
        finally:
            self._running = False
            await self._partitions.close()

    async def _copy(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set() and self.lane.state is not LaneState.FENCED:
            self._apply()
            try:
                if self._is_cold() or self._partitions.pause() == 0:
                    await self._unless_set(stopping, self._get_ready())
                if stopping.is_set() or self._is_cold():
                    continue
                await self._partitions.admit()
                await self._transactions.trials.undo()
                self._problems.over(self._name)
                await self._watch.check()
                await self._watch.retry_refused()
                if self._is_cold():
                    continue
                await self._cleaner.step(self.replicas)
                await self._transact(stopping)
                self._failures = 0
            except CopyRefused as error:
                self._partitions.refuse(error)
            except PartitionsUnavailable as error:
                if not self._partitions.leave_out_unwritable(error.reasons):
                    await self._tell_and_back_off(error, stopping)
            except Fenced:
                await self._find_out_by_whom(stopping)
            except LayoutChanged as error:  # the lane is over; the driver gives another assignment
                self._problems.tell(self._name, error)
            except ApplianceError as error:
                await self._tell_and_back_off(error, stopping)

    def _is_cold(self) -> bool:
        return self.lane.state is LaneState.COLD

    @property
    def _name(self) -> str:
        return f"lane {self.lane.index}"

    async def _get_ready(self) -> None:
        """Start a cold lane, and check due partitions; safe to repeat after a cancel at any await.

        A start fences, leaves our name (the fenced owner waits for it), reads the checkpoint, and writes down a change
        of the SQL.
        """
        if self._is_cold():
            self._partitions.restart()
            await self.lane.start()
            if self.lane.nameless:
                self._problems.tell(_NAMES, self.lane.nameless)
            else:
                self._problems.over(_NAMES)
            await self.lane.agree_on_sql(self.statement)
        await self._partitions.check_due()

    async def _unless_set(self, stopping: asyncio.Event, work: Coroutine[object, object, None]) -> None:
        """Do the work, or cut it off once ``stopping`` is set: a busy coordinator may take long.

        A transaction in it ends first: an open one would hide what others commit to the lane's partition behind it.
        """
        doing, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
        try:
            await asyncio.wait([doing, stopped], return_when=asyncio.FIRST_COMPLETED)
            while self.lane.in_transaction and not doing.done():
                await asyncio.wait([doing], timeout=_ENDING_INTERVAL)
        finally:
            stopped.cancel()
            doing.cancel()  # no effect if it is done
            await asyncio.gather(doing, stopped, return_exceptions=True)
        if not doing.cancelled():
            doing.result()

    async def _transact(self, stopping: asyncio.Event) -> None:
        """One transaction with the arrived records; none when there are none for long, or when retries are due."""
        pause = self._partitions.pause()
        try:
            async with asyncio.timeout(min(_SILENCE, pause)):
                await self.ready.wait()
        except TimeoutError:
            if pause >= _SILENCE:
                await self._look_for_others(stopping)
            return  # the lane may have another owner, or be cold, by now
        await self._transactions.step(stopping)

    async def _look_for_others(self, stopping: asyncio.Event) -> None:
        """Find out if an idle lane has another owner, or was changed by the operator."""
        if self.lane.state is not LaneState.COPYING or self._transactions.wrote:
            self._transactions.wrote = False
            return
        try:
            await self.lane.check_owner()
        except Fenced:
            await self._find_out_by_whom(stopping)
        except ApplianceError:
            return  # the next transaction meets it too

    async def _find_out_by_whom(self, stopping: asyncio.Event) -> None:
        """Find out if another replicator fenced us, or the coordinator's timeout, or the operator."""
        while True:
            try:
                error = await self.lane.taken_by()
                break
            except ApplianceError as unknown:
                await self._tell_and_back_off(unknown, stopping)
                if stopping.is_set():
                    return
        if error is not None:
            self._problems.tell(self._name, error)
        elif self._transactions.timed_out is not None:
            self._problems.tell(self._transactions.subject, self._transactions.timed_out)
            self._transactions.timed_out = None

    async def _tell_and_back_off(self, error: ApplianceError, stopping: asyncio.Event) -> None:
        self._problems.tell(self._name, error)
        self._failures += 1
        await back_off(self._failures, stopping)
