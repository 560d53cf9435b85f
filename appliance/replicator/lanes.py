"""Changing a link's layout: its number of lanes, or the lanes of single partitions (``link.model.layout``).

1. One transaction tells every lane's partition that the layout is changing: no lane that starts from then on may write.
2. Every lane is fenced, which was started before, and its checkpoint read.
3. The segments of the maps of offsets are written in their new lanes' partitions.
4. One transaction moves every position, gap and state, tells every partition of the new layout, and writes the link
   record. It is the change: before it the old layout holds, and after it the new one.
5. The segments are deleted in their old lanes' partitions.

All is written with one transactional id, so that of two such commands the later one fences the other. After a kill
anywhere, the same command continues. A replicator that was fenced in 2, or that starts meanwhile, waits for the link
record; one that wakes up later fences a lane, finds another layout's number in its partition, and writes nothing.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from appliance.errors import ApplianceError, BrokerBusy, Fenced, LinkRefused
from appliance.failover.operation import Operation
from appliance.kafka.client.topics import grow_topics
from appliance.kafka.client.transactions import init_producer_id
from appliance.kafka.protocol.metadata import NOBODY, Metadata
from appliance.kafka.records.records import Record
from appliance.link.client.checkpoint_log import peek_checkpoints
from appliance.link.client.offset_maps import segment_records
from appliance.link.client.registry import Registry
from appliance.link.client.retry import is_loading, retry_while_busy
from appliance.link.client.writer import Writer
from appliance.link.model.checkpoint import OPERATOR, LaneCheckpoint, LinkRecord, Owner
from appliance.link.model.copy_states import CopyState, States, effective
from appliance.link.model.layout import Layout, LayoutRecord
from appliance.link.model.link_check import PositionsTopic, layout_fault, unfit_for_a_change
from appliance.replicator.model.lane_moves import (
    Segments,
    announced,
    decided,
    misplaced_segments,
    moved_segments,
    segments_in,
)
from appliance.replicator.model.lanes_report import LanesReport, Loads
from appliance.replicator.write.lane import Lane

_UNFINISHED = frozenset({CopyState.FAILING_OVER, CopyState.FAILING_BACK, CopyState.RESETTING, CopyState.DELETED})
"""States in which another command has work left in the lanes."""

_FENCED_AT_ONCE = 16
_SEGMENTS_A_COMMIT = 256

Wanted = Callable[[Sequence[LaneCheckpoint], LinkRecord], Layout]
"""Returns the layout to make; its number does not count."""


async def change_layout(operation: Operation, wanted: Wanted, loads: Loads) -> LanesReport:
    """Give a link another layout; ``loads`` are shown.

    Raises:
        LinkRefused: there is no such link, it may not be changed as it is, or another command has taken over.
        SettingsError: there is no terminal to ask for consent.
        ApplianceError: the destination does not answer; the next run continues.
    """
    change, topic = _Change(operation, wanted), await find_positions(operation)
    unsettled = _unsettled(topic.checkpoints[0].states)
    if unsettled and not layout_fault(topic):  # a change that has begun comes first: all other commands wait for it
        raise unsettled
    layout = change.layout(topic.checkpoints)
    report = LanesReport(operation.naming.replicator, topic.layout, layout, loads, operation.choice.dry_run)
    if operation.choice.dry_run:
        return report
    if not change.is_made(topic.checkpoints):
        for line in replace(report, dry_run=True).lines():
            operation.tell(line)
        await operation.consent(f"change the lanes of {operation.naming.replicator}; copying stops for some seconds")
    try:
        await retry_while_busy(change.make, lambda error: error.retriable)
    except Fenced as error:
        raise LinkRefused("another command changes the lanes of this link: see `appliance lanes`") from error
    return replace(report, stall=change.stall, segments=change.segments)


async def find_positions(operation: Operation) -> PositionsTopic:
    """The positions topic of a link whose layout may be shown, and changed where no other command has work left.

    Raises:
        LinkRefused: there is no such link, or it is damaged.
        Unreachable, BrokerBusy, BrokerRefused, PeerError: as everywhere.
    """
    naming, destination = operation.naming, operation.destination
    known = (await destination.metadata([naming.positions_topic])).topics.get(naming.positions_topic)
    if known is None or not known.leaders:
        raise LinkRefused(f"there is no {naming.positions_topic}: no replicator of this link has ever run")
    checkpoints = await peek_checkpoints(destination, naming.positions_topic, len(known.leaders))
    topic = PositionsTopic(naming.positions_topic, "", checkpoints)
    registry = Registry(destination, naming.replicator)
    await registry.refresh()
    own = registry.own(await destination.metadata(None))
    if fault := unfit_for_a_change(topic, own, naming):
        raise LinkRefused(fault)
    return topic


@dataclass(slots=True)
class _Change:
    """One run of the command; ``stall`` are the seconds in which nothing could be copied."""

    operation: Operation
    wanted: Wanted
    stall: float = 0.0
    segments: int = 0
    _began: float = 0.0
    _generation: int = 0
    _writer: Writer = field(init=False)

    def layout(self, checkpoints: Sequence[LaneCheckpoint]) -> Layout:
        """The layout to make, the next one of the link."""
        link = _link(checkpoints)
        return replace(self.wanted(checkpoints, link), number=link.number + 1)

    def is_made(self, checkpoints: Sequence[LaneCheckpoint]) -> bool:
        """True when the link has that layout already, and nothing is left of a change but obsolete segments."""
        now, then = _link(checkpoints).layout, self.layout(checkpoints)
        topic = PositionsTopic(self.operation.naming.positions_topic, "", checkpoints)
        return (now.lanes, now.placed) == (then.lanes, then.placed) and not layout_fault(topic)

    async def make(self) -> None:
        """Make the layout, or what is left of it; each try begins with a new epoch."""
        await self._take_id()
        checkpoints = await self._peek()
        self._generation = max((each.owner.generation for each in checkpoints if each.owner), default=0)
        if self.is_made(checkpoints):
            await self._drop_what_is_left(_link(checkpoints).layout)
        else:
            await self._drop_segments(await self._change(checkpoints))

    async def _change(self, checkpoints: Sequence[LaneCheckpoint]) -> Layout:
        """Change the layout; the one that holds then.

        Raises:
            LinkRefused: another command had begun just before the lanes were fenced; the layout is as before.
            BrokerRefused: the topics could not be grown; the layout is as before.
        """
        self._began = self._began or time.monotonic()
        layout = self.layout(checkpoints)
        await self._announce(len(checkpoints), layout)
        refused = await self._grow(layout.lanes)
        checkpoints = await self._fence()
        layout, refused = self.layout(checkpoints), refused or _unsettled(checkpoints[0].states)
        if refused:  # no lane may be left refused
            layout = replace(_link(checkpoints).layout, number=layout.number)
        await self._move_segments(_link(checkpoints).layout, layout)
        await self._decide(checkpoints, layout)
        self.stall = time.monotonic() - self._began
        if refused:
            raise refused
        return layout  # not read again: a commit is answered before its markers are written

    async def _take_id(self) -> None:
        """Fence any other run of such a command, and end its transaction."""
        destination, naming = self.operation.destination, self.operation.naming

        async def take() -> Writer:
            destination.forget_coordinator(naming.lanes_id)
            coordinator = await destination.coordinator(naming.lanes_id)
            producer = await init_producer_id(coordinator, naming.lanes_id, self._timeout)
            metadata = await destination.metadata([naming.positions_topic, naming.offsets_topic])
            return Writer(destination, producer, (naming.positions_topic, 0), metadata, self._timeout)

        self._writer = await retry_while_busy(take, is_loading)

    @property
    def _timeout(self) -> float:
        return self.operation.settings.engine.transaction_timeout

    async def _peek(self) -> list[LaneCheckpoint]:
        found = self._partitions(self._positions)
        return self._whole(await peek_checkpoints(self.operation.destination, self._positions, found))

    def _whole(self, checkpoints: list[LaneCheckpoint]) -> list[LaneCheckpoint]:
        """The same; a broker that lags may not show all partitions of a topic that has just grown.

        Raises:
            BrokerBusy: there are more.
        """
        if not checkpoints or len(checkpoints) < _link(checkpoints).partitions:
            raise BrokerBusy(f"{self._positions} is not shown whole", "LEADER_NOT_AVAILABLE")
        return checkpoints

    @property
    def _positions(self) -> str:
        return self.operation.naming.positions_topic

    @property
    def _offsets(self) -> str:
        return self.operation.naming.offsets_topic

    def _partitions(self, name: str) -> int:
        known = self._writer.metadata.topics.get(name)
        return len(known.leaders) if known else 0

    async def _announce(self, partitions: int, layout: Layout) -> None:
        """Tell every lane's partition that no lane may write any more, from its next start on."""
        record = self._record(layout, is_changing=True)
        await self._write({self._positions: announced(partitions, record, self._owner())})

    async def _grow(self, lanes: int) -> ApplianceError | None:
        """Give the topics of positions and maps as many partitions as there will be lanes; none is ever removed.

        Returns the error after which trying again is useless.
        """
        destination = self.operation.destination
        names = [name for name in (self._positions, self._offsets) if self._partitions(name)]
        wanted = {name: lanes for name in names if self._partitions(name) < lanes}
        failures = await grow_topics(destination, wanted) if wanted else {}
        for error in failures.values():
            if error.retriable:
                raise error
            return error

        async def shown() -> Metadata:
            found = await destination.metadata(names)
            for name in names:
                topic = found.topics.get(name)
                if topic is None or len(topic.leaders) < lanes or NOBODY in topic.leaders:
                    raise BrokerBusy(f"{name} was grown and has not all leaders yet", "LEADER_NOT_AVAILABLE")
            return found

        self._writer.learn(await retry_while_busy(shown))
        return None

    async def _fence(self) -> list[LaneCheckpoint]:
        """Fence every lane, and read its checkpoint."""
        at_once = asyncio.Semaphore(_FENCED_AT_ONCE)

        async def fence(index: int) -> LaneCheckpoint:
            async with at_once:
                return await self._fenced(index)

        lanes = range(self._partitions(self._positions))
        fencing = [asyncio.create_task(fence(index), name=f"fence-{index}") for index in lanes]
        try:
            return self._whole(await asyncio.gather(*fencing))
        finally:
            for task in fencing:
                task.cancel()

    async def _fenced(self, index: int) -> LaneCheckpoint:
        """The checkpoint of a lane, once its owner is fenced."""
        operation = self.operation

        async def start() -> LaneCheckpoint:
            lane = Lane(index, operation.destination, operation.naming, self._owner(), self._timeout, None)
            await lane.start()
            return lane.checkpoint

        return await retry_while_busy(start, _may_pass)

    async def _move_segments(self, before: Layout, after: Layout) -> None:
        """Write the segments of moving partitions in their new lanes, where nothing older may be left of them."""
        segments = await self._segments()
        await self._write_segments(misplaced_segments(segments, before, _now()))
        moved = moved_segments(segments_in(segments, before), after)
        self.segments = sum(map(len, moved.values()))
        await self._write_segments(moved)

    async def _drop_segments(self, layout: Layout) -> None:
        """Delete the segments that are left in lanes which have their partitions no more."""
        await self._write_segments(misplaced_segments(await self._segments(), layout, _now()))

    async def _drop_what_is_left(self, seen: Layout) -> None:
        """The same after a killed run, once the layout that was ``seen`` is known to be the newest."""
        if misplaced_segments(await self._segments(), seen, _now()):
            await self._drop_segments(_link([await self._fenced(0)]).layout)

    async def _segments(self) -> list[Segments]:
        partitions = [(self._offsets, lane) for lane in range(self._partitions(self._offsets))]
        read = (retry_while_busy(partial(segment_records, self.operation.destination, each)) for each in partitions)
        return await asyncio.gather(*read)

    async def _write_segments(self, records: Mapping[int, Sequence[Record]]) -> None:
        for lane, own in records.items():
            for at in range(0, len(own), _SEGMENTS_A_COMMIT):
                await self._write({self._offsets: {lane: own[at : at + _SEGMENTS_A_COMMIT]}})

    async def _decide(self, checkpoints: Sequence[LaneCheckpoint], layout: Layout) -> None:
        """Change the layout, in one transaction."""
        link = _link(checkpoints).laid_out(layout, len(checkpoints))
        record = self._record(layout, is_changing=False)
        await self._write({self._positions: decided(checkpoints, link, record, self._owner(), record.since)})

    async def _write(self, records: Mapping[str, Mapping[int, Sequence[Record]]]) -> None:
        """Commit records of ours, by topic and partition, in one transaction."""
        remembered = {(topic, lane): own for topic, by_lane in records.items() for lane, own in by_lane.items()}
        await self._writer.write((), lambda *_: remembered)

    def _record(self, layout: Layout, *, is_changing: bool) -> LayoutRecord:
        stamp = self.operation.link.stamp
        return LayoutRecord(layout.number, layout.lanes, _now(), stamp.by, stamp.why, is_changing)

    def _owner(self) -> Owner:
        change = self.operation.link.stamp.change
        return Owner(OPERATOR, change, socket.gethostname(), _now(), self._generation)


def _link(checkpoints: Sequence[LaneCheckpoint]) -> LinkRecord:
    link = checkpoints[0].link
    if link is None:
        raise LinkRefused("the link record is gone: see `appliance status`")
    return link


def _unsettled(states: States) -> ApplianceError | None:
    """The refusal while another command has work left, which counts on the lanes as they are; None without one."""
    for topic in states:
        if (state := effective(states, topic)) in _UNFINISHED:
            return LinkRefused(f"{states[topic].subject} is {state}: end that first, then change the lanes")
    return None


def _may_pass(error: ApplianceError) -> bool:
    """True of an error after which a lane is fenced again: its replicator may have restarted it just then."""
    return error.retriable or isinstance(error, Fenced)


def _now() -> int:
    return time.time_ns() // 1_000_000
