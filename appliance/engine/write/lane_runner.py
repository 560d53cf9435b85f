"""The work of one lane: a start when it is cold, then transaction after transaction until it is stopped."""

import asyncio
import contextlib
import random
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.clock import loop_seconds
from appliance.engine.model.chunk import Chunk, Ledger
from appliance.engine.model.transaction_size import TransactionSize
from appliance.engine.problem_log import Notice, ProblemLog
from appliance.engine.read.buffer import ReadyQueue
from appliance.engine.read.source_reader import SourceReader
from appliance.engine.write.copy_watch import CopyWatch, MapCleaner
from appliance.engine.write.dead_letters import make_room
from appliance.engine.write.lane import Lane
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.engine.write.transformation import Transform, Transformation
from appliance.engine.write.trials import Trials
from appliance.errors import (
    ApplianceError,
    CopyRefused,
    Fenced,
    LayoutChanged,
    PartitionsUnavailable,
    TransactionTimedOut,
)
from appliance.kafka.client.interface import Cluster
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.link_sql import LinkSql
from appliance.link.model.replicas import Replica
from appliance.link.model.states import LaneState
from appliance.settings.values import EngineSettings, OnGap

_NAMES = "names of lanes"
"""The subject of a lane that copies without having left its name."""

_BACKOFF_MAX = 5.0
_CYCLE = 2
"""Minimum spacing of transaction starts, as a multiple of the average commit time."""

_SQL_INTERVAL = 0.15
"""Minimum spacing of transaction starts with SQL in flight, in seconds."""

_NEWEST = 1 / 8
"""EWMA weight of the newest commit time: a broker's pause must not cost its time twice."""

_ENDING_INTERVAL = 0.01
"""Seconds between two looks at a transaction that has to end before a stop."""

_SILENCE = 3.0
"""Idle time after which a lane checks that it still owns its transactional id, in seconds."""


@dataclass(slots=True)
class LaneRunner:
    """A lane with its source reader, its partitions, and the sums of its copies."""

    lane: Lane
    source: Cluster
    destination: Cluster
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
    _wrote: bool = False
    _took: float = 0.0
    _timed_out: TransactionTimedOut | None = None
    _size: TransactionSize = field(init=False)
    _problems: ProblemLog = field(init=False)
    _partitions: LanePartitions = field(init=False)
    _watch: CopyWatch = field(init=False)
    _cleaner: MapCleaner = field(init=False)
    _transformation: Transformation | None = field(init=False)
    _trials: Trials = field(init=False)

    def __post_init__(self) -> None:
        self._size = TransactionSize(self.engine.commit_bytes, self.engine.transaction_timeout)
        self._problems = ProblemLog(self.notice)
        records_gaps = self.engine.on_gap is OnGap.RECORD
        clusters = self.source, self.destination
        self._partitions = LanePartitions(self.lane, *clusters, self.reader, self.ready, self._problems, records_gaps)
        self._watch = CopyWatch(self._partitions)
        self._cleaner = MapCleaner(self.lane, self.destination)
        self._transformation = Transformation(self.sql, self._partitions) if self.sql else None
        self._trials = Trials(self._partitions, self._transform)

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
                await self._trials.undo()
                self._problems.over(self._name)
                await self._watch.look()
                await self._watch.look_for_room()
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

    @property
    def _transactions(self) -> str:
        return f"{self._name} transactions"

    async def _get_ready(self) -> None:
        """Start a cold lane, and check due partitions; safe to repeat after a cancel at any await.

        A start fences, leaves our name (the fenced owner waits for it), reads the checkpoint, and writes down a change
        of the SQL.
        """
        if self._is_cold():
            self._partitions.begin_anew()
            await self.lane.start()
            if self.lane.nameless:
                self._problems.tell(_NAMES, self.lane.nameless)
            else:
                self._problems.over(_NAMES)
            await self.lane.agree_on_sql(self.statement)
        await self._partitions.look()

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
        self.ready.clear()
        chunks = self.reader.take(self.ready, self._size.bytes)
        if chunks:
            began = loop_seconds()
            if self._transformation is None:
                await self._commit(chunks)
            else:
                await self._trials.each(chunks)
            await self._gather(began + self._interval, stopping)
        for replica, reason in self.reader.stopped(self.ready):
            await self._partitions.settle(replica, reason)
        if self.ready.filled:
            self.ready.set()

    @property
    def _interval(self) -> float:
        """Spacing of transaction starts while records trickle: a Spark job for a few costs as much as for many."""
        interval = min(_CYCLE * self._took, self.engine.commit_interval)
        return interval if self.sql is None else max(interval, _SQL_INTERVAL)

    async def _transform(self, chunks: Sequence[Chunk]) -> None:
        """One transaction with what the SQL makes of the chunks; a record that it fails on stops its partition."""
        assert self._transformation is not None
        try:
            passed, stops = await self._transformation.of(chunks)
            await make_room(self.lane, self.destination, passed, self._partitions.limits)
        except ApplianceError:
            self.lane.begin_anew()  # the chunks are read again
            raise
        await self._commit(passed)
        for replica, reason in stops.items():
            self.reader.forget([replica])
            await self._partitions.settle(replica, reason)

    async def _commit(self, chunks: Sequence[Chunk]) -> None:
        """One transaction, whose duration decides the size of the next one."""
        began, size = loop_seconds(), sum(chunk.bytes for chunk in chunks)
        try:
            await self.lane.commit(chunks, {})
        except ApplianceError as error:
            timed_out = self._size.failed(size, loop_seconds() - began)
            self._timed_out = timed_out if isinstance(error, Fenced) else None
            raise
        took = loop_seconds() - began
        self._size.committed(size, took)
        self._took += (took - self._took) * _NEWEST
        self._problems.over(self._transactions)
        self.ledger.add(chunks)
        self._wrote = True
        self._partitions.wrote_to({chunk.replica for chunk in chunks})

    async def _gather(self, until: float, stopping: asyncio.Event) -> None:
        """Collect a trickle of records for a moment, rather than commit it record by record."""
        while (pause := until - loop_seconds()) > 0 and not stopping.is_set() and not self.reader.full(self.ready):
            self.ready.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.ready.wait()

    async def _look_for_others(self, stopping: asyncio.Event) -> None:
        """Find out if an idle lane has another owner, or was changed by the operator."""
        if self.lane.state is not LaneState.COPYING or self._wrote:
            self._wrote = False
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
        elif self._timed_out is not None:
            self._problems.tell(self._transactions, self._timed_out)
            self._timed_out = None

    async def _tell_and_back_off(self, error: ApplianceError, stopping: asyncio.Event) -> None:
        self._problems.tell(self._name, error)
        self._failures += 1
        pause = min(_BACKOFF_MAX, 0.05 * 2**self._failures)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause * random.uniform(0.5, 1)):
                await stopping.wait()
