"""A lane of an order at work: it promises what it meets, opens what it was elected for, and commits what is next."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field

from appliance.clock import now_ms
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, Fenced, LayoutChanged, PartitionStopped, raise_first
from appliance.kafka.client.configs import write_limits
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.order import Epoch, Members, Promise
from appliance.link.model.states import LaneState
from appliance.order.catch_up import catch_up
from appliance.order.lane import OrderLane
from appliance.order.model.elections import accepted, first_promise, next_epoch, promise
from appliance.order.partition import Learned, OrderedPartition
from appliance.order.peers import Peer

_BACKOFF_MAX = 5.0
_IDLE = 1.0
"""Longest pause between two transactions' preparations, in seconds."""

_RETRY = 0.5
"""Pause after a catch-up that failed, in seconds."""


@dataclass(eq=False)
class OrderRunner:
    """One lane of the cluster ``own``, whose ``partitions`` may be changed at any time; ``peers`` are the other lanes.

    ``candidacy``: it is to become home of a new epoch with these members; ``first``: so it is where nobody has promised
    anything yet.
    """

    own: str
    lane: OrderLane
    peers: Mapping[str, Peer]
    problems: ProblemLog
    wake: asyncio.Event
    partitions: dict[Partition, OrderedPartition] = field(default_factory=dict)
    candidacy: Members | None = None
    first: Members | None = None
    _unchecked: set[Partition] = field(init=False, default_factory=set)
    _lessons: dict[Partition, asyncio.Task[None]] = field(init=False, default_factory=dict)
    _failures: int = field(init=False, default=0)

    @property
    def name(self) -> str:
        """The lane, for people."""
        return f"lane {self.lane.index}"

    def add(self, partition: OrderedPartition) -> None:
        """Order one more partition of T."""
        self.partitions[partition.key] = partition
        self._unchecked.add(partition.key)
        self.wake.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until ``stopping``, which also sets ``wake``; a transaction is finished."""
        following = [asyncio.create_task(peer.follow(), name=f"{self.name}-{peer.id}") for peer in self.peers.values()]
        try:
            while not stopping.is_set() and self.lane.state is not LaneState.FENCED:
                await self._step(stopping)
        finally:
            for task in (*following, *self._lessons.values()):
                task.cancel()
            await asyncio.gather(*following, *self._lessons.values(), return_exceptions=True)
            for partition in self.partitions.values():
                partition.restart()

    async def _step(self, stopping: asyncio.Event) -> None:
        try:
            if self.lane.state is LaneState.COLD:
                await self._start()
            self.wake.clear()
            await self._check_logs()
            if not await self._write():
                self._learn()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_IDLE):
                        await self.wake.wait()
            self._failures = 0
            self.problems.over(self.name)
        except Fenced as error:
            if (taken := await self._taken_by(error)) is not None:
                self.problems.tell(self.name, taken)
        except LayoutChanged as error:
            self.problems.tell(self.name, error)
        except ApplianceError as error:
            await self._tell_and_back_off(error, stopping)

    async def _start(self) -> None:
        for partition in self.partitions.values():
            partition.restart()
            partition.failure = None
        await self.lane.start()
        self._unchecked = {*self.partitions}

    async def _check_logs(self) -> None:
        """Check the logs of partitions before they are written (invariants H and J)."""
        unchecked = [self.partitions[key] for key in self._unchecked]
        if not unchecked:
            return
        keys = [each.key for each in unchecked]
        logs = {log.topic for key in keys for log in self.lane.logs_of(key)}
        await self.lane.learn([self.lane.offsets.topic, *logs])
        limits, unknown = await write_limits(self.lane.cluster, logs)
        raise_first(unknown.values())
        refused = await self.lane.check_logs(keys)
        for each in unchecked:
            error = refused.get(each.key)
            if error is not None and not isinstance(error, PartitionStopped):
                raise error
            if error is not None:
                each.stop(error)
            each.limit = min(limits[log.topic].batch_bytes for log in self.lane.logs_of(each.key))
            self._unchecked.discard(each.key)

    async def _write(self) -> bool:
        """Commit the next promise, or the next changes of all partitions; False if there is nothing to write."""
        if (newer := self._newer_promise()) is not None:
            await self.lane.commit([], newer)
            return True
        partitions = [each for each in self.partitions.values() if each.key not in self._unchecked]
        changes = [change for each in partitions if (change := each.next_change()) is not None]
        own = self.lane.promise
        if not changes:
            return False
        records = {change.partition: change.record for change in changes}
        everywhere = (
            own is not None
            and own.named != (own.members,)
            and all(records.get(key, self.lane.record(key)).accepted == own.epoch for key in self.partitions)
        )
        await self.lane.commit(changes, accepted(own) if own and everywhere else None)
        return True

    def _newer_promise(self) -> Promise | None:
        """The promise to give: of the newest epoch that another cluster has promised, or of one of its own."""
        own = self.lane.promise
        others = [each.checkpoint.promise for each in self.peers.values() if each.checkpoint.promise is not None]
        newest = max(others, key=lambda each: each.epoch, default=None)
        if own is None and newest is None and self.first and not any(each.unread for each in self.peers.values()):
            return first_promise(Epoch(1, self.own), self.first, now_ms())
        if self.candidacy is not None:
            members, self.candidacy = self.candidacy, None
            seen = [each.epoch for each in (*others, own) if each is not None]
            wanted = first_promise(next_epoch(self.own, seen), members, now_ms())
            return promise(own, wanted, now_ms())
        if newest is not None and (own is None or newest.epoch > own.epoch):
            return promise(own, newest, now_ms())
        return None

    def _learn(self) -> None:
        """Have partitions that nothing else brings forward catch up from other clusters."""
        for key, each in self.partitions.items():
            if key in self._lessons or (peer := each.source_to_learn_from()) is None:
                continue
            sizes = each.limit, each.commit_bytes
            work = catch_up(
                key, each.record, {**self.lane.checkpoint.positions}, peer, self.lane.naming, *sizes, single=each.single
            )
            self._lessons[key] = asyncio.create_task(self._lesson(each, work), name=f"{self.name}-catch-up-{key}")

    async def _lesson(self, partition: OrderedPartition, work: Awaitable[Learned | None]) -> None:
        try:
            partition.learned = await work
            self.problems.over(f"{partition.key} catch-up")
        except PartitionStopped as error:
            partition.stop(error)
        except ApplianceError as error:
            self.problems.tell(f"{partition.key} catch-up", error)
            await asyncio.sleep(_RETRY)
        finally:
            self._lessons.pop(partition.key, None)
            self.wake.set()

    async def _taken_by(self, error: Fenced) -> ApplianceError | None:
        """The newer owner of the lane; None if there is none, and the lane is cold."""
        try:
            return await self.lane.taken_by()
        except ApplianceError:
            await asyncio.sleep(_RETRY)
            return error

    async def _tell_and_back_off(self, error: ApplianceError, stopping: asyncio.Event) -> None:
        self.problems.tell(self.name, error)
        self._failures += 1
        pause = min(_BACKOFF_MAX, 0.05 * 2**self._failures)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause * random.uniform(0.5, 1)):
                await stopping.wait()
