"""A lane of an order at work: it promises what it meets, opens what it was elected for, and commits what is next."""

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.clock import loop_seconds
from appliance.engine.model.chunk import Spacing
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, CopyRefused, Fenced, PartitionStopped, raise_first
from appliance.kafka.client.configs import write_limits
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.retry import back_off
from appliance.link.model.order import Promise
from appliance.link.model.states import LaneState
from appliance.link.model.stops import SETTINGS
from appliance.order.ballot import Ballot
from appliance.order.catch_up import catch_up
from appliance.order.lane import OrderLane
from appliance.order.learning import Learned
from appliance.order.model.changes import Change
from appliance.order.model.elections import accepted, is_accepted_everywhere
from appliance.order.model.rebuilding import Beginning
from appliance.order.partition import OrderedPartition
from appliance.order.peers import Peer

_TICK, _IDLE_MARK = 0.5, 2.0
"""Longest pause between two looks at what is due, and between two commits of an idle lane, in seconds."""

_RETRY, _CHECK_AGAIN = 0.5, 5.0
"""Pauses after a catch-up that failed, and between two checks of logs that must not be written, in seconds."""

_CHECK_SOON = 0.1
"""The same of logs with a transaction that is ending, or without a leader."""


_LOOK_SECONDS = 5.0
"""Interval of looks for other leaders of the logs, in seconds."""


_REFUSED_SECONDS = 60.0
"""Time after which a refused record is tried again: the log's settings may allow it by then."""


@dataclass(eq=False)
class OrderRunner:
    """One lane of an order, whose ``partitions`` may be changed at any time; ``peers`` are those of other clusters."""

    lane: OrderLane
    peers: Mapping[str, Peer]
    problems: ProblemLog
    wake: asyncio.Event
    ballot: Ballot
    spacing: Spacing
    partitions: dict[Partition, OrderedPartition]
    is_placed: bool = field(init=False, default=False)
    """All partitions were added that there were at first."""
    _looked: float = field(init=False, default=0.0)
    _refused: dict[Partition, float] = field(init=False, default_factory=dict)
    """The partitions with a record that a log has refused, and when it is tried again."""
    _unchecked: dict[Partition, float] = field(init=False, default_factory=dict)
    """The partitions whose logs must be checked before they are written, and when."""
    _lessons: dict[Partition, asyncio.Task[None]] = field(init=False, default_factory=dict)
    _failures: int = field(init=False, default=0)

    @property
    def name(self) -> str:
        """The lane, for people."""
        return f"lane {self.lane.index}"

    def add(self, partition: OrderedPartition) -> None:
        """Order one more partition of T."""
        self.partitions[partition.key] = partition
        self._unchecked[partition.key] = 0.0
        self.wake.set()

    def shown(self) -> dict[Partition, int]:
        """The offset of each own hidden log before which T-global shows all."""
        shown: dict[Partition, int] = {}
        for key in self.partitions:
            record = self.lane.record(key)
            if record.hidden is not None and record.hidden.end is not None:
                is_home = record.hidden_tail(self.ballot.own) is not None
                shown[self.lane.logs_of(key)[1]] = record.following if is_home else record.hidden.end.offset
        return {log: offset for log, offset in shown.items() if offset > 0}

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until ``stopping``, which also sets ``wake``; a transaction is finished.

        Raises:
            Fenced: a newer process has taken the lane.
        """
        following = [
            asyncio.create_task(peer.log.follow(), name=f"{self.name}-{peer.id}") for peer in self.peers.values()
        ]
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
            await asyncio.sleep(0)  # a lane that has much to do lets others work, too
            await self._check_logs()
            began = loop_seconds()
            if await self._has_moved() or await self._write():
                await self._gather(began + self.spacing.seconds, stopping)
            else:
                self._learn()
                if (promise := self.lane.promise) is not None:
                    self.ballot.note_progress(promise)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min([_TICK, *(due - began for due in self._unchecked.values())])):
                        await self.wake.wait()
            self._failures = 0
            self.problems.over(self.name)
        except Fenced as error:
            if (taken := await self._taken_by(stopping)) is not None:
                raise taken from error
        except CopyRefused as error:
            self._refuse(error)
        except ApplianceError as error:
            await self._tell_and_back_off(error, stopping)

    def _refuse(self, error: CopyRefused) -> None:
        """Stop the partition whose log does not take a record; the others go on."""
        for key, each in self.partitions.items():
            if error.partition in self.lane.logs_of(key):
                remedy = f"; {SETTINGS[error.code]} of {error.partition[0]}" if error.code in SETTINGS else ""
                each.stop(PartitionStopped(f"{key}: {error}{remedy}"))
                self._refused[key] = loop_seconds() + _REFUSED_SECONDS

    async def _gather(self, until: float, stopping: asyncio.Event) -> None:
        """Collect a trickle of records for a moment, rather than commit it record by record."""
        if (pause := until - loop_seconds()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stopping.wait()

    async def _start(self) -> None:
        self._refused = {key: due for key, due in self._refused.items() if due > loop_seconds()}
        for key, partition in self.partitions.items():
            partition.restart()
            partition.failure = partition.failure if key in self._refused else None
        await self.lane.start()
        self._unchecked = dict.fromkeys(self.partitions, 0.0) | self._refused

    async def _check_logs(self) -> None:
        """Check the logs of partitions before they are written (invariants H and J); others do not wait for them."""
        now = loop_seconds()
        unchecked = [self.partitions[key] for key, due in self._unchecked.items() if due <= now]
        if not unchecked:
            return
        keys = [each.key for each in unchecked]
        logs = {log.topic for key in keys for log in self.lane.logs_of(key)}
        limits, unknown = await write_limits(self.lane.cluster, logs)
        raise_first(unknown.values())
        refused = await self.lane.check_logs(keys, limits)
        for each in unchecked:
            error = refused.get(each.key)
            if error is None:
                each.limit = min(limits[log.topic].batch_bytes for log in self.lane.logs_of(each.key))
                each.failure = None
                del self._unchecked[each.key]
                self.problems.over(str(each.key))
            elif isinstance(error, PartitionStopped):
                self._unchecked[each.key] = now + _CHECK_AGAIN
                each.stop(error)
            else:
                self._unchecked[each.key] = now + _CHECK_SOON
                self.problems.tell(str(each.key), error)

    async def _has_moved(self) -> bool:
        """Start the lane again if another broker leads a log, or it was made anew: it lacks records (invariant J)."""
        now = loop_seconds()
        if now < self._looked + _LOOK_SECONDS or not self.partitions:
            return False
        metadata = await self.lane.learn({log.topic for key in self.partitions for log in self.lane.logs_of(key)})
        self._looked = loop_seconds()
        checked = [key for key, each in self.partitions.items() if key not in self._unchecked and not each.failure]
        known = self.lane.writer.epochs
        anew = any(log not in known for key in checked for log in self.lane.logs_of(key))
        if moved := anew or self.lane.has_moved(metadata):
            self.lane.restart()
        return moved

    async def _write(self) -> bool:
        """Commit the next promise, or the next changes of all partitions; False if there is nothing to write."""
        try:
            return await self._write_next()
        except PartitionStopped as error:
            await self.lane.check_owner()  # a newer process may know more
            raise error
        except ApplianceError:
            for each in self.partitions.values():
                each.restart()  # what it has given was not written
            raise

    async def _write_next(self) -> bool:
        now, own = loop_seconds(), self.lane.promise
        if self._is_sound(own) and (newer := self.ballot.newer_promise(now)) is not None:
            await self._commit([], newer)
            self.ballot.promised(newer.epoch, now)
            return True
        if own is None:
            return False
        self.ballot.prepare(own, now)
        partitions = [each for each in self.partitions.values() if each.failure or each.key not in self._unchecked]
        changes = [change for each in partitions if (change := each.next_change()) is not None]
        orders = {**self.lane.checkpoint.orders, **{change.partition: change.record for change in changes}}
        others = {name: peer.checkpoint for name, peer in self.peers.items()}
        everywhere = own.named != (own.members,) and is_accepted_everywhere(own, self.ballot.own, orders, others)
        if changes or now - self.ballot.committed >= _IDLE_MARK:  # a lane that commits nothing is taken for dead
            await self._commit(changes, accepted(own) if everywhere else None if changes else own)
            self.ballot.note_progress(own)
        return bool(changes)

    async def _commit(self, changes: Sequence[Change], promise: Promise | None) -> None:
        began = loop_seconds()
        await self.lane.commit(changes, promise)
        self.ballot.committed = loop_seconds()
        self.spacing.note_commit(self.ballot.committed - began)

    def _is_sound(self, own: Promise | None) -> bool:
        """True if it may vote: all logs are what was written to them, or it is committed that they are not.

        Without any promise it does not vote with one log in doubt: it has lost its positions.
        """
        return self.is_placed and all(own is not None and self.lane.record(key).stopped for key in self._unchecked)

    def _learn(self) -> None:
        """Have partitions that nothing else brings forward catch up from other clusters."""
        for key, each in self.partitions.items():
            if key in self._lessons or (peer := each.source_to_learn_from()) is None:
                continue
            sizes = each.limit, each.commit_bytes
            work = catch_up(
                key, each.record, {**self.lane.checkpoint.positions}, peer, self.lane.naming, *sizes, single=each.single
            )
            lesson = self._lesson(each, peer.id, work)
            self._lessons[key] = asyncio.create_task(lesson, name=f"{self.name}-catch-up-{key}")

    async def _lesson(
        self, partition: OrderedPartition, peer: str, work: Awaitable[Learned | Beginning | None]
    ) -> None:
        partition.learning.avoided.add(peer)
        try:
            partition.learning.note(peer, brought := await work)
            if isinstance(brought, Beginning):
                await asyncio.sleep(_RETRY)
            self.problems.over(f"{partition.key} catch-up")
        except PartitionStopped as error:
            partition.stop(error)
        except ApplianceError as error:
            self.problems.tell(f"{partition.key} catch-up", error)
            await asyncio.sleep(_RETRY)
        finally:
            self._lessons.pop(partition.key, None)
            self.wake.set()

    async def _taken_by(self, stopping: asyncio.Event) -> ApplianceError | None:
        """The newer owner of the lane; None if there is none, and the lane is cold, or if it stops before it knows."""
        while not stopping.is_set():
            try:
                return await self.lane.taken_by()
            except ApplianceError as unknown:
                await self._tell_and_back_off(unknown, stopping)
        return None

    async def _tell_and_back_off(self, error: ApplianceError, stopping: asyncio.Event) -> None:
        self.problems.tell(self.name, error)
        self._failures += 1
        await back_off(self._failures, stopping)
