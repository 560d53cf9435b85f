"""A lane's chunks on their way to the SQL: each first one as a trial, and what has ended processes in parts."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from appliance.engine.model.chunk import Chunk, by_partition
from appliance.engine.model.ranges import TRIES_MAX, Failure, Trying
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.engine.write.transformation import failed
from appliance.errors import ApplianceError, ProcessFailed
from appliance.link.model.position import Trial
from appliance.link.model.replicas import Replica
from appliance.link.model.states import LaneState

_one_at_a_time = asyncio.Lock()


@dataclass(slots=True)
class Trials:
    """The trials of one lane's partitions in this process; ``step`` gives chunks to the SQL, and commits them."""

    partitions: LanePartitions
    step: Callable[[Sequence[Chunk]], Awaitable[None]]
    apart_seconds: float = 10.0
    """Longest pause before a record is tried again: another task's, which shares its Java, is tried at another time."""
    death_seconds: float = 0.5
    """Time in which this process ends with its Java, if that was the reason to stop."""
    _trying: dict[Replica, Trying] = field(default_factory=dict)
    _void: dict[Replica, tuple[Trial, Trial | None]] = field(default_factory=dict)
    """Those that do not count, and what the destination remembered before each."""
    _hangs: bool = False

    async def each(self, chunks: Sequence[Chunk]) -> None:
        """Take the step with all chunks at once, and then, in parts, with those in which a process has ended."""
        plain: list[Chunk] = []
        doubted: list[Chunk] = []
        for replica, own in by_partition(chunks).items():
            position = self.partitions.position(replica)
            trying = self._trying.get(replica)
            if trying is None or position.next_offset < trying.start:
                trying = self._trying[replica] = Trying.of(position, own[-1].next_offset)
            (plain if trying.tries == 1 or position.next_offset >= trying.until else doubted).extend(own)
        if plain:
            await self._try(plain)
        for chunk in sorted(doubted, key=self._found):  # what may end this process comes last
            await self._in_parts(chunk, self._trying[chunk.replica])

    def _found(self, chunk: Chunk) -> int:
        trial = self.partitions.position(chunk.replica).trial
        return trial.tries if trial else 0

    async def _try(self, chunks: Sequence[Chunk]) -> None:
        """Write down the trials that begin, and take the step; what stops it counts for nothing if no process ends."""
        lane, begun, void = self.partitions.lane, {}, {}
        for replica, own in by_partition(chunks).items():
            position, trying = self.partitions.position(replica), self._trying[replica]
            trial = trying.trial(position.next_offset, own[-1].next_offset)
            if trial != position.trial and position.next_offset < trying.until:
                begun[replica], void[replica] = replace(position, trial=trial), (trial, position.trial)
        await lane.commit([], begun)
        try:
            await self.step(chunks)
        except ProcessFailed:
            self._hangs = True
            raise
        except ApplianceError:
            self._void |= void
            self._passed(chunks)  # the SQL has: they could not be written
            raise
        except asyncio.CancelledError:
            await asyncio.sleep(self.death_seconds)
            if not self._hangs and lane.state is LaneState.COPYING:
                self._void |= void
                await self.undo()
            raise
        self._passed(chunks)

    def _passed(self, chunks: Sequence[Chunk]) -> None:
        """End the trials of partitions whose last one has passed: a position may go back."""
        for chunk in chunks:
            if chunk.next_offset >= (trying := self._trying[chunk.replica]).until:
                self._trying[chunk.replica] = trying._replace(until=0)

    async def undo(self) -> None:
        """Forget the trials that do not count, at the destination; the lane is copying."""
        undone = {
            replica: replace(position, trial=before)
            for replica, (trial, before) in self._void.items()
            if replica in self.partitions.replicas  # its position may be gone, with a removed topic
            if (position := self.partitions.lane.checkpoint.positions.get(replica.source)) and position.trial == trial
        }
        if undone:
            await self.partitions.lane.commit([], undone)
        self._void.clear()

    async def _in_parts(self, chunk: Chunk, trying: Trying) -> None:
        replica = chunk.replica
        while True:
            position = self.partitions.position(replica)
            at = position.next_offset
            if at >= chunk.next_offset or position.stopped:
                return
            if trying.tries > TRIES_MAX:
                failure = Failure(at, f"Spark has ended, or made no progress, {TRIES_MAX} times with it")
                self.partitions.reader.forget([replica])
                self._trying[replica] = Trying(0, 0)
                await self.partitions.settle(replica, failed(replica, failure))
                return
            async with _one_at_a_time if trying.tries > 2 else contextlib.nullcontext():
                await asyncio.sleep(random.uniform(0, self.apart_seconds) if trying.tries > 2 else 0)
                end = trying.trial(at, chunk.next_offset).end
                batches = tuple(each for each in chunk.batches if each.next_offset > at and each.first_offset < end)
                await self._try([replace(chunk, batches=batches, next_offset=end, dropped=chunk.dropped_in(at, end))])
