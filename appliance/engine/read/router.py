"""The routing of buffers: each belongs to the fetcher of the broker that leads its partition."""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable

from appliance.clock import loop_seconds
from appliance.engine.problem_log import ProblemLog, log_defect
from appliance.engine.read.buffer import Buffer
from appliance.engine.read.buffer_budget import BufferBudget
from appliance.engine.read.fetcher import Fetcher
from appliance.engine.read.leaders import FENCED, OUT_OF_RANGE, Leaders, out_of_range
from appliance.errors import ApplianceError, BrokerBusy, BrokerRefused
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition, is_another
from appliance.link.client.origins import Origins

_BACKOFF, _BACKOFF_MAX, _IN_VAIN = 0.2, 1.0, 0.05
"""Interval of looks for leaders, in seconds; it grows with the time for which none was found."""

_SHARE = 0.2
"""Largest share of the time spent on looking for leaders while there are none: metadata of many topics take long."""

_AGE_MIN, _AGE_MAX, _AGE_SHARE = 10.0, 300.0, 0.005
"""Largest age of metadata, in seconds, and their share of the time. A former leader says that it is replaced; metadata
of all topics find recreated ones, and former leaders that do not know or cannot say it."""

_JUDGES = 8
"""Most partitions judged at once: retention that was faster than we are may have overtaken thousands."""


class Router:
    """Looks for the leaders of the buffers, while its event loop runs; ``fetchers`` are those of the brokers met."""

    def __init__(self, source: Cluster, budget: BufferBudget, problems: ProblemLog, origins: Origins | None) -> None:
        self._cluster = source
        self._budget = budget
        self._problems = problems
        self._origins = origins
        self._leaders = Leaders()
        self._buffers: dict[Partition, Buffer] = {}
        self._unplaced: dict[Partition, Buffer] = {}
        """The buffers whose leader is looked for."""
        self.fetchers: dict[int, Fetcher] = {}
        self._changed = asyncio.Event()
        self._search_time = self._success_time = loop_seconds()
        self._due = 0.0
        self._judges = asyncio.Semaphore(_JUDGES)
        self.tasks: set[asyncio.Task[None]] = set()
        self._begin(self._route(), "reader-router")

    async def close(self) -> None:
        """End all reading."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def add(self, buffer: Buffer) -> None:
        """Read into this buffer."""
        self._buffers[buffer.key] = self._unplaced[buffer.key] = buffer
        self._changed.set()

    def remove(self, partition: Partition) -> Buffer | None:
        """Stop reading a partition; its buffer, if there is one."""
        buffer = self._buffers.pop(partition, None)
        if buffer is not None:
            self._withdraw(buffer)
        return buffer

    def has_room(self) -> None:
        """Full buffers may have room."""
        for fetcher in self.fetchers.values():
            fetcher.has_room()

    def release(self, buffers: Iterable[Buffer]) -> None:
        """Look for the new leader of these soon, but not too often."""
        for buffer in buffers:
            buffer.leader = NOBODY
            self._unplaced[buffer.key] = buffer
        pause = max(0.0, self._search_time + _BACKOFF - loop_seconds())
        asyncio.get_running_loop().call_later(pause, self._changed.set)

    def refuse(self, buffer: Buffer, error: BrokerRefused) -> None:
        """Handle a leader's refusal of a partition: another one leads by now, or the log has lost the next records."""
        if error.code == OUT_OF_RANGE:
            buffer.leader = NOBODY
            self._begin(self._judge(buffer), f"reader-{buffer}")
            return
        if error.code == FENCED:
            self._leaders.note_epoch(buffer, buffer.leader_epoch + 1)
        self._look_for_leader(buffer, error)

    def _begin(self, work: Coroutine[object, object, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _look_for_leader(self, buffer: Buffer, error: ApplianceError) -> None:
        self._doubt(buffer, error)
        self.release([buffer])

    def _doubt(self, buffer: Buffer, error: ApplianceError) -> None:
        """Log the problem of a partition, unless it is new: a leader that moves is no problem."""
        if buffer.doubted:
            self._problems.tell(buffer.subject, error)
        buffer.doubted = True

    def _withdraw(self, buffer: Buffer) -> None:
        self._unplaced.pop(buffer.key, None)
        if fetcher := self.fetchers.get(buffer.leader):
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
            error = log_defect(failure)
        if self._buffers.get(buffer.key) is not buffer:
            return
        if reason is not None:
            buffer.stop(reason)
        else:
            self._look_for_leader(buffer, error)

    async def _route(self) -> None:
        """Give each buffer to the fetcher of the broker that leads its partition."""
        while True:
            # Before the look, so that buffers that come while it waits for an answer get another look.
            self._changed.clear()
            self._search_time = loop_seconds()
            everything = self._search_time >= self._due
            try:
                await self._look_up(list((self._buffers if everything else self._unplaced).values()))
            except Exception as error:
                self._problems.tell("source", error if isinstance(error, ApplianceError) else log_defect(error))
                await asyncio.sleep(_BACKOFF)
                continue
            self._problems.over("source")
            for fetcher in self.fetchers.values():
                fetcher.rest(self._unplaced.values())
            searching = bool(self._unplaced)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause(everything=everything)):
                    await self._changed.wait()
            if not searching:
                self._success_time = loop_seconds()

    def _pause(self, *, everything: bool) -> float:
        """Seconds until the next look for leaders, unless something changes before; the last one was just now."""
        now = loop_seconds()
        took = now - self._search_time
        if everything:
            self._due = now + min(max(_AGE_MIN, took / _AGE_SHARE), _AGE_MAX)
        if not self._unplaced:
            return self._due - now
        in_vain = min(_IN_VAIN * (now - self._success_time), _BACKOFF_MAX)
        return min(self._due - now, max(_BACKOFF, in_vain, took / _SHARE))

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
        """
        topic = metadata.topics.get(buffer.key[0])
        if topic is None:
            raise BrokerBusy(f"{buffer}: the source has no such topic now", "UNKNOWN_TOPIC_OR_PARTITION")
        if is_another(topic.id, buffer.replica.source_id):
            if buffer.leader != NOBODY:
                self._withdraw(buffer)
                self._unplaced[buffer.key] = buffer
            raise BrokerBusy(f"{buffer}: the source names another topic of that name", "UNKNOWN_TOPIC_ID")
        check(topic.error, f"find the leader of {buffer}")
        epoch, leader = self._leaders.newest(buffer, metadata), metadata.leader(*buffer.key)
        if leader == NOBODY:
            raise BrokerBusy(f"{buffer} has no leader now", "LEADER_NOT_AVAILABLE")
        moved = buffer.leader != NOBODY and (buffer.leader, buffer.leader_epoch) != (leader, epoch)
        if moved or buffer.key in self._unplaced:
            self._withdraw(buffer)
            self._success_time = self._search_time
            buffer.leader, buffer.leader_epoch = leader, epoch
            self._fetcher(leader).add(buffer)

    def _fetcher(self, node: int) -> Fetcher:
        fetcher = self.fetchers.get(node)
        if fetcher is None:
            fetcher = Fetcher(node, self._cluster, self._budget, self._problems, self, self._origins)
            self.fetchers[node] = fetcher
            self._begin(self._run(fetcher), f"reader-{node}")
        return fetcher

    async def _run(self, fetcher: Fetcher) -> None:
        """Fetch until cancelled; a fetcher that ends otherwise restarts."""
        while True:
            try:
                await fetcher.run()
            except Exception as error:
                fetcher.restart(log_defect(error))
