"""The source's reader in a Spark task: a Fetch in flight to every leader, and a bounded buffer a partition.

Reading runs ahead of writing by the buffers' size, so that fetching and committing overlap.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable

from appliance.clock import loop_seconds
from appliance.engine.model.chunk import Chunk
from appliance.engine.problem_log import Notice, ProblemLog, unexpected
from appliance.engine.read.buffer import Buffer, Limits, ReadyQueue
from appliance.engine.read.buffer_budget import BufferBudget
from appliance.engine.read.fetcher import Fetcher
from appliance.engine.read.leaders import FENCED, OUT_OF_RANGE, Leaders, out_of_range
from appliance.errors import ApplianceError, BrokerBusy, BrokerRefused, PartitionStopped
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition, is_another
from appliance.link.client.origins import Origins
from appliance.link.model.replicas import Replica

_BACKOFF, _BACKOFF_MAX, _IN_VAIN = 0.2, 1.0, 0.05
"""Interval of looks for leaders, in seconds; it grows with the time for which none was found."""

_SHARE = 0.2
"""Largest share of the time spent on looking for leaders while there are none: metadata of many topics take long."""

_AGE_MIN, _AGE_MAX, _AGE_SHARE = 10.0, 300.0, 0.005
"""Largest age of metadata, in seconds, and their share of the time. A former leader says that it is replaced; metadata
of all topics find recreated ones, and former leaders that do not know or cannot say it."""

_JUDGES = 8
"""Most partitions judged at once: retention that was faster than we are may have overtaken thousands."""


class SourceReader:
    """The buffers of the partitions of one process's lanes, filled while its event loop runs.

    With ``origins``, what a link wrote at the source is left out.
    """

    def __init__(self, source: Cluster, notice: Notice, origins: Origins | None = None) -> None:
        self._cluster = source
        self._origins = origins
        self._problems = ProblemLog(notice)
        self._budget = BufferBudget()
        self._leaders = Leaders()
        self._buffers: dict[Partition, Buffer] = {}
        self._unplaced: dict[Partition, Buffer] = {}
        """The buffers whose leader is looked for."""
        self._fetchers: dict[int, Fetcher] = {}
        self._changed = asyncio.Event()
        self._looked = self._found = loop_seconds()
        self._judges = asyncio.Semaphore(_JUDGES)
        self._tasks: set[asyncio.Task[None]] = set()
        self._begin(self._route(), "reader-router")

    async def close(self) -> None:
        """End all reading."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def bound(self, bytes_per_second: int) -> None:
        """Bound the bytes read in a second; 0 is unbounded."""
        self._budget.allowance.bound(bytes_per_second)

    def read(self, replica: Replica, position: int, epoch: int, ready: ReadyQueue, limits: Limits) -> None:
        """Read a partition from ``position`` on; drops its buffer and the answer in flight.

        ``epoch`` is the leader epoch of the batch before the position, -1 when unknown. ``ready`` is the lane's queue
        of chunks to ``take``, or of partitions in ``stopped``.
        """
        self.forget([replica])
        buffer = Buffer(replica, position, epoch, ready, limits, origins=self._origins)
        self._buffers[buffer.key] = self._unplaced[buffer.key] = buffer
        self._changed.set()

    def forget(self, replicas: Iterable[Replica]) -> None:
        """Stop reading these partitions."""
        for replica in replicas:
            buffer = self._buffers.pop(replica.source, None)
            if buffer is not None:
                self._take_away(buffer)
                buffer.ready.forget(buffer)
                self._budget.bytes -= buffer.bytes
                self._problems.over(buffer.subject)
        self._look_again()

    def take(self, ready: ReadyQueue, limit: int) -> list[Chunk]:
        """Take a lane's ready chunks, up to about ``limit`` bytes, of each partition in turn."""
        taken = ready.take(limit)
        self._budget.bytes -= sum(chunk.bytes for chunk in taken)
        if taken:
            self._look_again()
        return taken

    def full(self, ready: ReadyQueue) -> bool:
        """True when a buffer of the lane is so full that its partition is not fetched until some is taken."""
        return not all(map(self._budget.room, ready.filled))

    def stopped(self, ready: ReadyQueue) -> list[tuple[Replica, PartitionStopped]]:
        """A lane's partitions that can be read no further and whose chunks are all taken; each once."""
        told = ready.stopped()
        self.forget(replica for replica, _ in told)
        return told

    def release(self, buffers: Iterable[Buffer]) -> None:
        """Look for the new leader of these soon, but not too often."""
        for buffer in buffers:
            buffer.leader = NOBODY
            self._unplaced[buffer.key] = buffer
        pause = max(0.0, self._looked + _BACKOFF - loop_seconds())
        asyncio.get_running_loop().call_later(pause, self._changed.set)

    def refuse(self, buffer: Buffer, error: BrokerRefused) -> None:
        """Handle a leader's refusal of a partition: another one leads by now, or the log has lost the next records."""
        if error.code == OUT_OF_RANGE:
            buffer.leader = NOBODY
            self._begin(self._judge(buffer), f"reader-{buffer}")
            return
        if error.code == FENCED:
            self._leaders.seen(buffer, buffer.leader_epoch + 1)
        self._look_for_leader(buffer, error)

    def _begin(self, work: Coroutine[object, object, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _look_again(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.look_again()

    def _look_for_leader(self, buffer: Buffer, error: ApplianceError) -> None:
        self._doubt(buffer, error)
        self.release([buffer])

    def _doubt(self, buffer: Buffer, error: ApplianceError) -> None:
        """Log the problem of a partition, unless it is new: a leader that moves is no problem."""
        if buffer.doubted:
            self._problems.tell(buffer.subject, error)
        buffer.doubted = True

    def _take_away(self, buffer: Buffer) -> None:
        self._unplaced.pop(buffer.key, None)
        if fetcher := self._fetchers.get(buffer.leader):
            fetcher.drop(buffer)
        buffer.leader = NOBODY

    async def _judge(self, buffer: Buffer) -> None:
        """Find out, beside all reading, if a partition's log has lost the next records."""
        reason = None
        error: ApplianceError = BrokerBusy(
            f"fetch {buffer} from offset {buffer.position}: {OUT_OF_RANGE}, and its leader has that offset",
            OUT_OF_RANGE,
        )
        try:
            async with self._judges:
                reason = await out_of_range(self._cluster, self._leaders, buffer)
        except ApplianceError as failure:
            error = failure
        except Exception as failure:
            error = unexpected(failure)
        if self._buffers.get(buffer.key) is not buffer:
            return
        if reason is not None:
            buffer.stop(reason)
        else:
            self._look_for_leader(buffer, error)

    async def _route(self) -> None:
        """Give each buffer to the fetcher of the broker that leads its partition."""
        due = 0.0
        while True:
            # Before the look, so that buffers that come while it waits for an answer get another look.
            self._changed.clear()
            self._looked = loop_seconds()
            everything = self._looked >= due
            try:
                await self._look_up(list((self._buffers if everything else self._unplaced).values()))
            except Exception as error:
                self._problems.tell("source", error if isinstance(error, ApplianceError) else unexpected(error))
                await asyncio.sleep(_BACKOFF)
                continue
            self._problems.over("source")
            for fetcher in self._fetchers.values():
                fetcher.rest(self._unplaced.values())
            now = loop_seconds()
            if everything:
                due = now + min(max(_AGE_MIN, (now - self._looked) / _AGE_SHARE), _AGE_MAX)
            in_vain = min(_IN_VAIN * (now - self._found), _BACKOFF_MAX)
            soon = now + max(_BACKOFF, in_vain, (now - self._looked) / _SHARE)
            searching = bool(self._unplaced)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout((min(soon, due) if searching else due) - now):
                    await self._changed.wait()
            if not searching:
                self._found = loop_seconds()

    async def _look_up(self, buffers: list[Buffer]) -> None:
        if not buffers:
            return
        metadata = await self._cluster.metadata(sorted({buffer.replica.source_topic for buffer in buffers}))
        for buffer in buffers:
            if self._buffers.get(buffer.key) is buffer and not buffer.stopped:
                try:
                    self._place(buffer, metadata)
                except ApplianceError as error:
                    if buffer.key in self._unplaced:
                        self._doubt(buffer, error)

    def _place(self, buffer: Buffer, metadata: Metadata) -> None:
        """Give a buffer to the newest leader's fetcher.

        A topic of that name with another id is never read (invariant G). A broker that lags names a deleted one; if it
        is a new one, topic discovery finds it and takes this partition back.

        Raises:
            BrokerBusy, BrokerRefused: the leader is unknown.
        """
        topic = metadata.topics.get(buffer.key[0])
        if topic is None:
            raise BrokerBusy(f"{buffer}: the source has no such topic now", "UNKNOWN_TOPIC_OR_PARTITION")
        if is_another(topic.id, buffer.replica.source_id):
            if buffer.leader != NOBODY:
                self._take_away(buffer)
                self._unplaced[buffer.key] = buffer
            raise BrokerBusy(f"{buffer}: the source names another topic of that name", "UNKNOWN_TOPIC_ID")
        check(topic.error, f"find the leader of {buffer}")
        epoch, leader = self._leaders.newest(buffer, metadata), metadata.leader(*buffer.key)
        if leader == NOBODY:
            raise BrokerBusy(f"{buffer} has no leader now", "LEADER_NOT_AVAILABLE")
        moved = buffer.leader != NOBODY and (buffer.leader, buffer.leader_epoch) != (leader, epoch)
        if moved or buffer.key in self._unplaced:
            self._take_away(buffer)
            self._found = self._looked
            buffer.leader, buffer.leader_epoch = leader, epoch
            self._fetcher(leader).add(buffer)

    def _fetcher(self, node: int) -> Fetcher:
        fetcher = self._fetchers.get(node)
        if fetcher is None:
            fetcher = self._fetchers[node] = Fetcher(
                node, self._cluster, self._budget, self._problems, self, self._origins
            )
            self._begin(self._run(fetcher), f"reader-{node}")
        return fetcher

    async def _run(self, fetcher: Fetcher) -> None:
        """Fetch until cancelled; a fetcher that ends otherwise begins anew."""
        while True:
            try:
                await fetcher.run()
            except Exception as error:
                fetcher.begin_anew(unexpected(error))
