"""The link in reverse of a failback: from the copies to their sources, with its positions at the source cluster.

A lane's first position of a partition commits with a gap. The gap's cause names the failback, and its offsets are those
of the source that were never copied. A lane copies only while its own checkpoint says ``active``. A run writes that
after it has fenced the lane and checked that the failback is still its own, and ends it before the positions of the
link move: a run that was suspended and wakes up later copies nothing.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from appliance.clock import now_ms
from appliance.commands.run.operation import Operation
from appliance.engine.control.assignment import Assignment, Notice, Report
from appliance.engine.task.runner import TaskRunner
from appliance.engine.write.lane import Lane
from appliance.errors import LinkRefused, raise_first
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.topics import require_led
from appliance.kafka.protocol.metadata import is_another
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.client.retry import is_passing, retry_while_busy
from appliance.link.handle import Link
from appliance.link.model.checkpoint import Gap, LaneCheckpoint, Owner
from appliance.link.model.checkpoint_records import encode_state
from appliance.link.model.copy_states import LINK, CopyState, StateRecord, effective
from appliance.link.model.layout import Layout
from appliance.link.model.naming import Naming
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica, lanes_of
from appliance.link.model.topic_configs import offsets_topic, positions_topic
from appliance.settings.values import OnGap

LOST_AGAIN = "the source has lost what was copied back: run this again, it copies that once more"
_STOPS = frozenset({"PartitionStopped", "GapFound"})
BEGUN = "begun"
"""A detail of the state: the link in reverse has its first positions."""

InLane = Callable[[Lane, Sequence[Replica]], Awaitable[None]]
"""Writes in a fenced lane, given the partitions in reverse that the lane owns."""


def reversed_replica(replica: Replica) -> Replica:
    """The partition in reverse."""
    topics = replica.destination_topic, replica.partition, replica.source_topic
    return Replica(*topics, replica.destination_id, replica.source_id)


@dataclass(slots=True)
class ReverseLink:
    """The link in reverse for one run of the command, with the number ``generation``.

    ``checkpoints`` are those of its lanes, as far as they were read; ``faults`` are the open problems of its lanes, by
    subject. ``began`` is in milliseconds: a lane that copies takes the name by which the run has fenced it for its own.
    """

    operation: Operation
    generation: int = 1
    checkpoints: list[LaneCheckpoint] = field(default_factory=list)
    faults: dict[str, Notice] = field(default_factory=dict)
    began: int = field(default_factory=now_ms)
    link: Link = field(init=False)

    def __post_init__(self) -> None:
        # The source's topics keep the records' times, unless the operator lets them change.
        self.link = self.operation.link.reversed(keeps_times=not self.operation.choice.allow_loss)

    @property
    def naming(self) -> Naming:
        """Its names."""
        return self.link.naming

    def position(self, replica: Replica) -> Position | None:
        """The last read position of a partition in reverse."""
        return self._checkpoint(replica).positions.get(replica.copy)

    def kept_position(self, replica: Replica) -> Position | None:
        """The position up to which the uncopied records of its source are kept elsewhere.

        Its key is the topic that keeps them; releases before had the source topic, which may also be that of a copy.
        """
        positions = self._checkpoint(replica).positions
        position = positions.get(self.operation.naming.diverged_partition(replica.source))
        before = positions.get(replica.source)
        return position or (before if before and not is_another(before.source_id, replica.source_id) else None)

    def beginning(self, replica: Replica) -> Gap | None:
        """The source offsets of a partition that were uncopied when this failback began; None before that."""
        gaps, failback = self._checkpoint(replica).gaps.values(), self.failback(replica.source_topic)
        own = [gap for gap in gaps if gap.partition == replica.copy and gap.cause == failback]
        return max(own, key=lambda gap: gap.found, default=None)

    def deleted(self, replica: Replica) -> tuple[int, int] | None:
        """The offsets of a copy deleted before they were copied back in this failback; None: there are none.

        From the first up to but without the second.
        """
        begun, gaps = self.beginning(replica), self._checkpoint(replica).gaps.values()
        own = [gap for gap in gaps if gap.partition == replica.copy and begun and begun is not gap]
        own = [gap for gap in own if begun and gap.found >= begun.found]
        return (min(gap.first for gap in own), max(gap.next for gap in own)) if own else None

    def _checkpoint(self, replica: Replica) -> LaneCheckpoint:
        checkpoints = self.checkpoints
        return checkpoints[self._layout.lane_of(*replica.copy)] if checkpoints else LaneCheckpoint()

    @property
    def _layout(self) -> Layout:
        """The layout with which its topics were made: it never changes."""
        return Layout(len(self.checkpoints))

    def failing(self, topic: str) -> StateRecord | None:
        """The failback state of a topic; None where it does not fail back."""
        states = self.operation.lanes.states
        record = states.get(topic) or states.get(LINK)
        return record if record and record.state is CopyState.FAILING_BACK else None

    def failback(self, topic: str) -> str:
        """The id of a topic's failback; this run's if none has begun."""
        record = self.failing(topic)
        return record.change if record else self.operation.lanes.stamp.change

    async def read(self) -> None:
        """Read its checkpoints; nothing where no failback has ever begun."""
        name, source = self.naming.positions_topic, self.link.destination
        topic = (await source.metadata([name])).topics.get(name)
        if topic is None or not topic.leaders:
            return
        self.checkpoints = self.checkpoints or [LaneCheckpoint() for _ in topic.leaders]
        for lane, checkpoint in enumerate(self.checkpoints):
            await peek_checkpoint(source, name, lane, checkpoint)

    def be_newer_than(self, generation: int) -> None:
        """Take a later generation than that one, and than every name that was ever left here."""
        owners = [checkpoint.owner.generation for checkpoint in self.checkpoints if checkpoint.owner]
        self.generation = max([self.generation - 1, generation, *owners]) + 1

    async def make(self) -> None:
        """Make the topics of its positions and maps, if missing, and read the positions."""
        naming, source, lanes = self.naming, self.link.destination, len(self.operation.lanes.checkpoints)
        for topic in (positions_topic(naming, lanes, -1), offsets_topic(naming, lanes, -1)):
            if topic.name not in (await source.metadata([topic.name])).topics:
                creation = await ConfigFilter(source).make([topic])
                raise_first(creation.failures.values())
            await retry_while_busy(partial(require_led, source, {topic.name: 1}))
        await retry_while_busy(self.read)

    async def fence(self, replicas: Sequence[Replica]) -> None:
        """Fence the lanes of these partitions, stop all copying there, and read their checkpoints."""
        await self.in_lanes(replicas, lambda lane, _: self.let(lane, CopyState.PAUSED))

    async def let(self, lane: Lane, state: CopyState) -> None:
        """Make a fenced lane copy (active) or not (paused)."""
        if effective(lane.checkpoint.states, LINK) is not state or LINK not in lane.checkpoint.states:
            stamp = replace(self.operation.lanes.stamp, topic=LINK, state=state, since=now_ms())
            await lane.remember([encode_state(stamp, stamp.since)])
            lane.checkpoint.add(stamp)  # the lane's markers may not be seen yet

    async def in_lanes(self, replicas: Iterable[Replica], write: InLane) -> None:
        """Fence the lanes of these partitions, and write there; LinkRefused if this run was taken over.

        An older run may fence us once more.
        """
        lanes = self.operation.lanes
        for index, owned in self._lanes(replicas).items():

            async def attempt(index: int = index, owned: Sequence[Replica] = owned) -> None:
                lanes.require(lanes.states)
                lane = self._lane(index)
                await lane.start()
                self.checkpoints[index] = lane.checkpoint
                await lanes.read()
                lanes.require(lanes.states)
                await write(lane, owned)

            await retry_while_busy(attempt, is_passing)
        await self.read()

    def _lanes(self, replicas: Iterable[Replica]) -> Mapping[int, tuple[Replica, ...]]:
        return lanes_of(map(reversed_replica, replicas), self._layout)

    def _owner(self) -> Owner:
        return Owner(self.operation.lanes.stamp.change, "failback", socket.gethostname(), self.began, self.generation)

    def _lane(self, index: int) -> Lane:
        timeout = self.operation.settings.engine.transaction_timeout
        return Lane(index, self.link.destination, self.naming, self._owner(), timeout)

    @asynccontextmanager
    async def copying(self, replicas: Sequence[Replica]) -> AsyncIterator["asyncio.Task[None]"]:
        """Copy these partitions back meanwhile; finishes a transaction that has begun."""
        on_gap = OnGap.RECORD if self.operation.choice.allow_loss else OnGap.STOP
        engine = replace(self.operation.settings.engine, on_gap=on_gap)
        assignment = Assignment(self._lanes(replicas), {}, engine.max_bytes_per_second)
        stopping = asyncio.Event()
        self.faults.clear()

        async def assignments() -> AsyncIterator[Assignment]:
            yield assignment
            await stopping.wait()

        clusters = self.link.source, self.link.destination
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

    def require_going(self, replicas: Iterable[Replica]) -> None:
        """See that its lanes are still ours and may copy, and that none of these partitions has stopped."""
        for fault in self.faults.values():
            if fault.kind == "Fenced":
                raise LinkRefused(f"another failback of this link has taken over: {fault.fault}")
            if fault.kind == "CopyShortened":
                raise LinkRefused(f"{fault.subject}: {LOST_AGAIN}")
            if fault.kind in _STOPS:
                raise LinkRefused(f"{fault.subject} is not copied back any further: {fault.fault}")
        states = [effective(self.checkpoints[lane].states, LINK) for lane in self._lanes(replicas)]
        if any(state is not CopyState.ACTIVE for state in states):
            raise LinkRefused("another failback of this link has ended what this one copied: run this one again")

    async def maps(self, replicas: Iterable[Replica]) -> OffsetMaps:
        """The maps of what was copied back, from the copies to their sources."""
        maps = self.link.maps()
        await maps.read({replica.copy for replica in replicas})
        return maps
