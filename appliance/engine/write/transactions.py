"""A lane's transactions with records, one after the other; each one's duration decides the size of the next one."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from appliance.clock import loop_seconds
from appliance.engine.model.chunk import Chunk, Ledger, Spacing, TransactionSize
from appliance.engine.write.dead_letters import make_room
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.engine.write.transformation import Transform, Transformation
from appliance.engine.write.trials import Trials
from appliance.errors import ApplianceError, Fenced, TransactionTimedOut
from appliance.settings.values import EngineSettings

_SQL_INTERVAL = 0.15
"""Minimum spacing of transaction starts with SQL in flight, in seconds."""


@dataclass(slots=True)
class Transactions:
    """The transactions of one lane's partitions, through the ``sql`` if there is some; ``ledger`` has their sums.

    ``wrote`` is set by each one; ``timed_out`` is the problem of one that ended with its timeout, and the lane's epoch.
    """

    partitions: LanePartitions
    engine: EngineSettings
    ledger: Ledger
    sql: Transform | None = None
    wrote: bool = False
    timed_out: TransactionTimedOut | None = None
    _spacing: Spacing = field(init=False)
    _size: TransactionSize = field(init=False)
    trials: Trials = field(init=False)

    def __post_init__(self) -> None:
        self._spacing = Spacing(self.engine.commit_interval)
        self._size = TransactionSize(self.engine.commit_bytes, self.engine.transaction_timeout)
        self.trials = Trials(self.partitions, self._transform)

    @property
    def subject(self) -> str:
        """The subject under which their problems are logged."""
        return f"lane {self.partitions.lane.index} transactions"

    async def step(self, stopping: asyncio.Event) -> None:
        """One transaction with the records that are ready, and the stops of partitions that can be read no further."""
        partitions = self.partitions
        ready, reader = partitions.ready, partitions.reader
        ready.clear()
        chunks = reader.take(ready, self._size.bytes)
        if chunks:
            began = loop_seconds()
            if self.sql is None:
                await self._commit(chunks)
            else:
                await self.trials.each(chunks)
            await self._gather(began + self._interval, stopping)
        for replica, reason in reader.take_stops(ready):
            await partitions.settle(replica, reason)
        if ready.buffers_with_chunks:
            ready.set()

    @property
    def _interval(self) -> float:
        """Spacing of transaction starts while records trickle: a Spark job for a few costs as much as for many."""
        return self._spacing.seconds if self.sql is None else max(self._spacing.seconds, _SQL_INTERVAL)

    async def _gather(self, until: float, stopping: asyncio.Event) -> None:
        """Collect a trickle of records for a moment, rather than commit it record by record."""
        ready, reader = self.partitions.ready, self.partitions.reader
        while (pause := until - loop_seconds()) > 0 and not stopping.is_set() and not reader.full(ready):
            ready.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await ready.wait()

    async def _transform(self, chunks: Sequence[Chunk]) -> None:
        """One transaction with what the SQL makes of the chunks; a record that it fails on stops its partition."""
        partitions = self.partitions
        assert self.sql is not None
        try:
            passed, stops = await Transformation(self.sql, partitions).of(chunks)
            await make_room(partitions.lane, passed, partitions.limits)
        except ApplianceError:
            partitions.lane.restart()  # the chunks are read again
            raise
        await self._commit(passed)
        for replica, reason in stops.items():
            partitions.reader.forget([replica])
            await partitions.settle(replica, reason)

    async def _commit(self, chunks: Sequence[Chunk]) -> None:
        """One transaction, whose duration decides the size of the next one."""
        began, size = loop_seconds(), sum(chunk.bytes for chunk in chunks)
        try:
            await self.partitions.lane.commit(chunks, {})
        except ApplianceError as error:
            timed_out = self._size.note_failure(size, loop_seconds() - began)
            self.timed_out = timed_out if isinstance(error, Fenced) else None
            raise
        took = loop_seconds() - began
        self._size.note_commit(size, took)
        self._spacing.note_commit(took)
        self.partitions.problems.over(self.subject)
        self.ledger.add(chunks)
        self.wrote = True
        self.partitions.wrote_to({chunk.replica for chunk in chunks})
