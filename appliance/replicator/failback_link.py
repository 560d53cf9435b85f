"""The link in reverse of a failback: from the copies to their sources, with its positions at the source cluster.

It has the link's names, but for ``.failback`` behind the replicator's. A lane's first position of a partition commits
with a gap, which says by its cause in which failback it was made, and what the source held that was never copied.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from appliance.errors import BrokerBusy, Fenced, LinkRefused
from appliance.failover.model.failback_plan import Refusal, Seed, seed
from appliance.failover.operation import Operation
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.fetch import FetchLimits
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.partition_reader import fetch_partition
from appliance.kafka.protocol.metadata import NOBODY
from appliance.kafka.records import batch
from appliance.kafka.records.committed import committed
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import Gap, LaneCheckpoint, Owner
from appliance.link.model.naming import Naming
from appliance.link.model.position import UNACCOUNTED, CopyEnd, Position
from appliance.link.model.replicas import Replica, lane_of, lanes_of
from appliance.link.model.topic_configs import positions_topic
from appliance.replicator.spark.assignment import Assignment, Notice, Report
from appliance.replicator.spark.task_runner import TaskRunner
from appliance.replicator.write.copies import as_found
from appliance.replicator.write.lane import Lane
from appliance.settings.values import OnGap

_LIMITS = FetchLimits(1024 * 1024, wait=0)
_STOPS = frozenset({"PartitionStopped", "GapFound", "CopyShortened"})
_TAKEN = frozenset({"Fenced", "Superseded"})

Failback = Callable[[str], str]
"""The id of the failback that a source topic is in."""


def reversed_replica(replica: Replica) -> Replica:
    """The way back of a partition."""
    topics = replica.destination_topic, replica.partition, replica.source_topic
    return Replica(*topics, replica.destination_id, replica.source_id)


@dataclass(slots=True)
class ReverseLink:
    """The link in reverse for one run of the command, the number of which is ``generation``.

    ``checkpoints`` is what each of its lanes remembers, as far as it was read; ``faults`` are what its lanes complain
    of now, by subject.
    """

    operation: Operation
    run: str
    generation: int = 1
    checkpoints: list[LaneCheckpoint] = field(default_factory=list)
    faults: dict[str, Notice] = field(default_factory=dict)

    @property
    def naming(self) -> Naming:
        """Its names."""
        return self.operation.naming.failback

    def position(self, replica: Replica) -> Position | None:
        """The position of a partition on its way back, as it was read last."""
        return self._checkpoint(replica).positions.get(replica.copy) if self.checkpoints else None

    def begun(self, replica: Replica, failback: str) -> Gap | None:
        """The source offsets of a partition that were never copied, when this failback began; None before that."""
        return _begun(self._checkpoint(replica), replica, failback) if self.checkpoints else None

    def _checkpoint(self, replica: Replica) -> LaneCheckpoint:
        return self.checkpoints[lane_of(*replica.copy, len(self.checkpoints))]

    async def read(self) -> None:
        """Read what it remembers; nothing where no failback has ever begun."""
        name, source = self.naming.positions_topic, self.operation.source
        known = (await source.metadata([name])).topics.get(name)
        if known is None or not known.leaders:
            return
        self.checkpoints = self.checkpoints or [LaneCheckpoint() for _ in known.leaders]
        for lane, checkpoint in enumerate(self.checkpoints):
            await peek_checkpoint(source, name, lane, checkpoint)

    async def make(self) -> None:
        """Make its positions topic, if there is none, and read it."""
        name, source = self.naming.positions_topic, self.operation.source
        if name not in (await source.metadata([name])).topics:
            lanes = len(self.operation.link.checkpoints)
            made = await ConfigFilter(source).make([positions_topic(self.naming, lanes, -1)])
            for error in made.failures.values():
                raise error
        await retry_while_busy(self._require_leaders)
        await retry_while_busy(self.read)

    async def _require_leaders(self) -> None:
        name = self.naming.positions_topic
        known = (await self.operation.source.metadata([name])).topics.get(name)
        if not known or not known.leaders or NOBODY in known.leaders:
            raise BrokerBusy(f"{name} was made and has no leaders yet", "LEADER_NOT_AVAILABLE")

    async def plan(self, replicas: Iterable[Replica], failback: Failback) -> dict[Replica, Seed]:
        """Plan where the partitions begin that have not begun yet.

        Raises:
            LinkRefused: some cannot be failed back.
        """
        fresh = [r for r in replicas if self._has_to_begin(self._checkpoint_or_none(r), r, failback)]
        ends = await self._source_ends(fresh)
        positions = self.operation.link.positions
        planned = {replica: seed(replica, positions.get(replica.source), ends[replica]) for replica in fresh}
        refusals = [each for each in planned.values() if isinstance(each, Refusal)]
        if refusals:
            raise LinkRefused("cannot be failed back: " + "; ".join(map(str, refusals)))
        return {replica: each for replica, each in planned.items() if isinstance(each, Seed)}

    def _checkpoint_or_none(self, replica: Replica) -> LaneCheckpoint:
        return self._checkpoint(replica) if self.checkpoints else LaneCheckpoint()

    @staticmethod
    def _has_to_begin(checkpoint: LaneCheckpoint, replica: Replica, failback: Failback) -> bool:
        """True of what has not begun, or has copied nothing yet and found that somebody writes to its source."""
        if _begun(checkpoint, replica, failback(replica.source_topic)) is None:
            return True
        held = checkpoint.positions[replica.copy]
        return not held.records and UNACCOUNTED in held.stopped

    async def begin(self, replicas: Sequence[Replica], failback: Failback) -> None:
        """Write the first position of each partition that has none in this failback, lane by lane.

        Raises:
            ApplianceError: as ``Lane.commit``; run again, it goes on.
        """
        planned = await self.plan(replicas, failback)
        back = {reversed_replica(replica): replica for replica in planned}

        async def write(lane: Lane, owned: Sequence[Replica]) -> None:
            missing = [back[r] for r in owned if self._has_to_begin(lane.checkpoint, back[r], failback)]
            seeds = {reversed_replica(replica): planned[replica].position for replica in missing}
            gaps = [_gap(replica, planned[replica], failback(replica.source_topic)) for replica in missing]
            await lane.commit([], seeds, gaps)

        await self._in_lanes(planned, write)

    async def fence(self, replicas: Iterable[Replica]) -> None:
        """Fence the lanes of these partitions, and read what they remember: nothing of it is under way any more."""

        async def nothing(*_: object) -> None:
            """Write nothing."""

        await self._in_lanes(replicas, nothing)

    async def _in_lanes(
        self, replicas: Iterable[Replica], write: Callable[[Lane, Sequence[Replica]], Awaitable[None]]
    ) -> None:
        """Fence the lanes of these partitions, and write there. A run that was taken over may fence us once more.

        Raises:
            LinkRefused: it is this run that was taken over.
        """
        link = self.operation.link
        for index, owned in self._lanes(replicas).items():

            async def attempt(index: int = index, owned: Sequence[Replica] = owned) -> None:
                await link.read()
                link.require(link.states)
                lane = self._lane(index)
                await lane.start()
                await write(lane, owned)
                self.checkpoints[index] = lane.checkpoint

            await retry_while_busy(attempt, lambda error: error.retriable or isinstance(error, Fenced))

    def _lanes(self, replicas: Iterable[Replica]) -> Mapping[int, tuple[Replica, ...]]:
        return lanes_of(map(reversed_replica, replicas), len(self.checkpoints))

    def _owner(self) -> Owner:
        return Owner(self.run, "failback", socket.gethostname(), _now(), self.generation)

    def _lane(self, index: int) -> Lane:
        timeout = self.operation.settings.engine.transaction_timeout
        return Lane(index, self.operation.source, self.naming, self._owner(), timeout)

    @asynccontextmanager
    async def copying(self, replicas: Sequence[Replica]) -> AsyncIterator["asyncio.Task[None]"]:
        """Copy these partitions back meanwhile; a transaction that has begun is finished."""
        engine = replace(self.operation.settings.engine, on_gap=OnGap.STOP)
        assignment = Assignment(self._lanes(replicas), {}, engine.max_bytes_per_second)
        stopping = asyncio.Event()
        self.faults.clear()

        async def assignments() -> AsyncIterator[Assignment]:
            yield assignment
            await stopping.wait()

        clusters = self.operation.destination, self.operation.source
        runner = TaskRunner(*clusters, self.naming, engine, self._owner(), self._heard)
        running = asyncio.create_task(runner.run(assignments()), name="failback")
        try:
            yield running
        finally:
            stopping.set()
            await asyncio.gather(running, return_exceptions=True)
        running.result()

    def _heard(self, report: Report) -> None:
        if not isinstance(report, Notice):
            return
        if report.fault:
            self.faults[report.subject] = report
            self.operation.tell(f"{report.subject}: {report.fault}")
        else:
            self.faults.pop(report.subject, None)

    def require_going(self) -> None:
        """See that its lanes are still ours, and that none of its partitions has stopped.

        Raises:
            LinkRefused: that is not so.
        """
        for fault in self.faults.values():
            if fault.kind in _TAKEN:
                raise LinkRefused(f"another failback of this link has taken over: {fault.fault}")
            if fault.kind in _STOPS:
                raise LinkRefused(f"{fault.subject} is not copied back any further: {fault.fault}")

    async def written_there(self, replica: Replica, begun: Gap) -> tuple[int, int] | None:
        """The records that somebody else wrote to a source among those that were copied back, as first and next offset.

        Raises:
            ApplianceError: the source cannot be read.
        """
        held = self.position(replica)
        assert held is not None
        assert held.copy_end is not None
        mark = self._checkpoint(replica).mark
        ours = {held.copy_end.producer_id} | ({mark.producer_id} if mark else set())
        source = self.operation.source
        metadata = await source.metadata([replica.source_topic])
        at = max(begun.next, (await list_offsets(source, metadata, [replica.source], Bound.START))[replica.source])
        first = following = -1
        while at < held.copy_end.offset:
            fetched = await fetch_partition(source, metadata, replica.source, at, "failback", _LIMITS)
            batches = list(batch.split(fetched.records))
            for each in committed(batches, fetched.aborted):
                if at <= each.header.base_offset < held.copy_end.offset and each.header.producer_id not in ours:
                    first = each.header.base_offset if first < 0 else first
                    following = each.header.last_offset + 1
            at = batches[-1].header.last_offset + 1 if batches else held.copy_end.offset
        return (first, following) if first >= 0 else None

    async def _source_ends(self, replicas: Sequence[Replica]) -> dict[Replica, CopyEnd]:
        source = self.operation.source
        metadata = await source.metadata(sorted({replica.source_topic for replica in replicas}))
        ends = await list_offsets(source, metadata, [replica.source for replica in replicas], Bound.END)
        return {replica: as_found(ends[replica.source], metadata, replica.source) for replica in replicas}


def _begun(checkpoint: LaneCheckpoint, replica: Replica, failback: str) -> Gap | None:
    gaps = [gap for gap in checkpoint.gaps.values() if gap.partition == replica.copy and gap.cause == failback]
    return max(gaps, key=lambda gap: gap.found, default=None)


def _gap(replica: Replica, planned: Seed, failback: str) -> Gap:
    return Gap(replica.copy, replica.source_id, *planned.diverged, failback, _now())


def _now() -> int:
    return time.time_ns() // 1_000_000
