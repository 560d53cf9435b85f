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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from appliance.clock import monotonic, now_ms
from appliance.commands.model.lanes_report import LanesReport, Loads
from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import Plan, constant
from appliance.driver.layout_writer import LanesWriter, link_of
from appliance.errors import ApplianceError, Fenced, LinkRefused
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import LaneCheckpoint, LinkRecord
from appliance.link.model.copy_states import States, effective
from appliance.link.model.lane_moves import (
    announcement,
    layout_records,
    misplaced_segments,
    moved_segments,
    next_number,
    segments_in,
)
from appliance.link.model.layout import Layout, LayoutRecord
from appliance.link.model.link_check import PositionsTopic, layout_fault, unfit_for_a_change

Wanted = Callable[[Sequence[LaneCheckpoint], LinkRecord], Layout]
"""Returns the layout to make; its number does not count."""


async def change_layout(operation: Operation, wanted: Wanted, loads: Loads) -> Plan[LanesReport]:
    """Give a link another layout, unless it may not be changed as it is; ``loads`` are shown."""
    change, topic = _Change(operation, wanted), await find_positions(operation)
    unsettled = _unsettled(topic.checkpoints[0].states)
    if unsettled and not layout_fault(topic):  # a change that has begun comes first: all other commands wait for it
        raise unsettled
    layout = change.layout(topic.checkpoints)
    foreseen = LanesReport(operation.naming.replicator, topic.layout, layout, loads, dry_run=True)

    async def apply() -> LanesReport:
        try:
            await retry_while_busy(change.make, lambda error: error.retriable)
        except Fenced as error:
            raise LinkRefused("another command changes the lanes of this link: see `appliance lanes`") from error
        return replace(foreseen, dry_run=False, stall=change.stall, segments=change.segments)

    if change.is_made(topic.checkpoints):
        return Plan(constant(foreseen), apply)
    question = f"change the lanes of {operation.naming.replicator}; copying stops for some seconds"
    return Plan(constant(foreseen), apply, question, foreseen.lines())


async def find_positions(operation: Operation) -> PositionsTopic:
    """The positions topic of a link whose layout may be shown, and changed where no other command has work left."""
    return await operation.link.checked_positions(unfit_for_a_change)


@dataclass(slots=True)
class _Change:
    """One change; ``stall`` are the seconds in which nothing could be copied."""

    operation: Operation
    wanted: Wanted
    stall: float = 0.0
    segments: int = 0
    _began: float = 0.0
    _writer: LanesWriter = field(init=False)

    def __post_init__(self) -> None:
        operation = self.operation
        timeout, change = operation.settings.engine.transaction_timeout, operation.lanes.stamp.change
        self._writer = LanesWriter(operation.destination, operation.naming, timeout, change)

    def layout(self, checkpoints: Sequence[LaneCheckpoint]) -> Layout:
        """The layout to make, the next one of the link."""
        link = link_of(checkpoints)
        return replace(self.wanted(checkpoints, link), number=next_number(checkpoints, link))

    def is_made(self, checkpoints: Sequence[LaneCheckpoint]) -> bool:
        """True when the link has that layout already, and nothing is left of a change but obsolete segments."""
        now, then = link_of(checkpoints).layout, self.layout(checkpoints)
        topic = PositionsTopic(self.operation.naming.positions_topic, "", checkpoints)
        return (now.lanes, now.placed) == (then.lanes, then.placed) and not layout_fault(topic)

    async def make(self) -> None:
        """Make the layout, or what is left of it; each try begins with a new epoch."""
        await self._writer.take_id()
        checkpoints = await self._writer.peek()
        if self.is_made(checkpoints):
            await self._drop_what_is_left(link_of(checkpoints).layout)
        else:
            await self._drop_segments(await self._change(checkpoints))

    async def _change(self, checkpoints: Sequence[LaneCheckpoint]) -> Layout:
        """Change the layout; the one that holds then. After a refusal the layout is as before."""
        self._began = self._began or monotonic()
        layout = self.layout(checkpoints)
        record = self._record(layout, is_changing=True)
        await self._writer.write(announcement(len(checkpoints), record, self._writer.owner()))
        refused = await self._writer.grow(layout.lanes)
        checkpoints = await self._writer.fence()
        layout, refused = self.layout(checkpoints), refused or _unsettled(checkpoints[0].states)
        if refused:  # no lane may be left refused
            layout = replace(link_of(checkpoints).layout, number=layout.number)
        await self._move_segments(link_of(checkpoints).layout, layout)
        await self._decide(checkpoints, layout)
        self.stall = monotonic() - self._began
        if refused:
            raise refused
        return layout  # not read again: a commit is answered before its markers are written

    async def _move_segments(self, before: Layout, after: Layout) -> None:
        """Write the segments of moving partitions in their new lanes, where nothing older may be left of them."""
        segments = await self._writer.segments()
        await self._writer.write_segments(misplaced_segments(segments, before, now_ms()))
        segments_after = moved_segments(segments_in(segments, before), after)
        self.segments = sum(map(len, segments_after.values()))
        await self._writer.write_segments(segments_after)

    async def _drop_segments(self, layout: Layout) -> None:
        """Delete the segments that are left in lanes which have their partitions no more."""
        await self._writer.write_segments(misplaced_segments(await self._writer.segments(), layout, now_ms()))

    async def _drop_what_is_left(self, seen: Layout) -> None:
        """The same after a killed run, once the layout that was ``seen`` is known to be the newest."""
        if misplaced_segments(await self._writer.segments(), seen, now_ms()):
            await self._drop_segments(link_of([await self._writer.fenced(0)]).layout)

    async def _decide(self, checkpoints: Sequence[LaneCheckpoint], layout: Layout) -> None:
        """Change the layout, in one transaction."""
        link = link_of(checkpoints).laid_out(layout, len(checkpoints))
        record = self._record(layout, is_changing=False)
        await self._writer.write(layout_records(checkpoints, link, record, self._writer.owner(), record.since))

    def _record(self, layout: Layout, *, is_changing: bool) -> LayoutRecord:
        stamp = self.operation.lanes.stamp
        return LayoutRecord(layout.number, layout.lanes, now_ms(), stamp.by, stamp.why, is_changing)


def _unsettled(states: States) -> ApplianceError | None:
    """The refusal while another command has work left, which counts on the lanes as they are; None without one."""
    for topic in states:
        if (state := effective(states, topic)).is_unfinished:
            return LinkRefused(f"{states[topic].subject} is {state}: end that first, then change the lanes")
    return None
