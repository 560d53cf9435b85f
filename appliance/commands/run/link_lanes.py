"""Changing the states of a link: they are written into every lane's partition, after the lane was fenced.

The first lane's partition is written first, and is authoritative. A command that was killed after some lanes is run
again: it reads the first lane, and updates the lanes that differ. So does any later command. Of two simultaneous
operators, the one who takes the first lane last continues; the other one sees that at the next lane, and ends.
"""

import functools
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.clock import now_ms
from appliance.engine.write.lane import Lane
from appliance.errors import LayoutChanged, LinkRefused, OutcomeUnknown
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.client.offset_maps import segment_records
from appliance.link.client.retry import is_passing, retry_while_busy
from appliance.link.handle import Link
from appliance.link.model.checkpoint import OPERATOR, Gap, LaneCheckpoint, Owner
from appliance.link.model.checkpoint_records import encode_owner, encode_state
from appliance.link.model.copy_states import (
    LINK,
    CopyEvent,
    Details,
    StateChange,
    StateRecord,
    States,
    change,
    no_details,
)
from appliance.link.model.layout import Layout
from appliance.link.model.link_check import PositionsTopic
from appliance.link.model.offset_map import Segment
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica

_SETTLING = frozenset({CopyEvent.PROMOTED, CopyEvent.RETURNED, CopyEvent.POSITIONED, CopyEvent.POSITIONED_PAUSED})
"""The events that finish a state: valid only for the very state that their command has settled."""

Subjects = Collection[str] | None
"""Topics, or the link by its empty name; None: the link with each topic that has its own state."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Positions that replace a lane's, the gaps that they leave, and their maps' segments, or of ``cut`` ones none."""

    positions: Mapping[Replica, Position]
    gaps: Sequence[Gap] = ()
    segments: Sequence[tuple[Partition, Segment]] = ()
    cut: Collection[Replica] = ()


@dataclass(slots=True)
class LinkLanes:
    """The lanes of one link, with its states and positions, for one run of a command.

    ``stamp`` says by whom and why states are changed, and its ``change`` is the run's id. ``checkpoints`` are those of
    the lanes of the ``layout``, as far as they were read. ``require`` gets the valid states once a lane is fenced, and
    raises if nothing may be changed.
    """

    link: Link
    transaction_timeout: float
    stamp: StateRecord
    require: Callable[[States], None] = lambda _: None
    checkpoints: list[LaneCheckpoint] = field(default_factory=list)
    layout: Layout = field(default_factory=lambda: Layout(0))

    @property
    def states(self) -> States:
        """The valid states: those of the first lane."""
        return self.checkpoints[0].states

    @property
    def positions(self) -> Mapping[Partition, Position]:
        """The last read position of each source partition."""
        return {key: position for checkpoint in self.checkpoints for key, position in checkpoint.positions.items()}

    async def read(self, topic: PositionsTopic | None = None) -> None:
        """Read the checkpoints of all lanes, at first those of a checked positions ``topic``."""
        if not self.checkpoints:
            topic = topic or await self.link.checked_positions()
            self.layout = topic.layout
            self.checkpoints = list(topic.checkpoints[: topic.lanes])
        for lane in range(len(self.checkpoints)):
            await self._peek(lane)
        record = self.checkpoints[0].link
        if (record.number if record else 0) != self.layout.number:
            raise LayoutChanged(f"the lanes of {self.link.naming.replicator} were changed meanwhile: run this again")

    async def _peek(self, lane: int) -> None:
        """Read the newly committed records of a lane, without fencing anybody."""
        link = self.link
        await peek_checkpoint(link.destination, link.naming.positions_topic, lane, self.checkpoints[lane])

    async def change(self, subjects: Subjects, event: CopyEvent, details: Details = no_details) -> StateChange:
        """Apply an event in every lane; LinkRefused if another command has changed the states meanwhile.

        When it returns, no lane fenced by it, or by an earlier run of the same command, writes to copies whose states
        forbid it; and the positions are those of the stop.
        """
        stamp = replace(self.stamp, since=now_ms())
        outcome = change(self.states, subjects, event, stamp, details)
        if outcome.records:
            outcome = await retry_while_busy(lambda: self._change_first(subjects, event, stamp, details), is_passing)
        for lane in range(1, len(self.checkpoints)):
            await retry_while_busy(functools.partial(self._tell, lane), is_passing)
        await self.read()
        return outcome

    async def _change_first(
        self, subjects: Subjects, event: CopyEvent, stamp: StateRecord, details: Details
    ) -> StateChange:
        lane = await self.take(0)
        self.require(lane.checkpoint.states)
        if event in _SETTLING:
            self._require_as_settled(lane.checkpoint.states, subjects)
        elif event is CopyEvent.GIVEN_UP:  # a failover may have taken over what this command gives up
            named, now = {LINK, *self.states} if subjects is None else subjects, lane.checkpoint.states
            subjects = [subject for subject in named if now.get(subject) == self.states.get(subject)]
        outcome = change(lane.checkpoint.states, subjects, event, stamp, details)
        await self._write(lane, outcome.records)
        return outcome

    def _require_as_settled(self, states: States, subjects: Subjects) -> None:
        """Refuse if another command has changed, and perhaps changed back, the states that this one has settled."""
        for subject in states if subjects is None else subjects:
            now, then = (by_subject.get(subject) or by_subject.get(LINK) for by_subject in (states, self.states))
            if now != then and now is not None and now.change != self.stamp.change:
                raise LinkRefused(f"another command has made {now.subject} {now.state} meanwhile: run this one again")

    async def note(self, records: Callable[[States], Collection[StateRecord]]) -> None:
        """Write records that change no state, given the valid states, into the first lane alone."""
        await self._in_lane(0, lambda lane: self._write(lane, records(lane.checkpoint.states)))

    async def leave_name(self, index: int) -> None:
        """Take a lane and leave the operator's name there: a running replicator takes the lane back."""
        await self._in_lane(index, lambda lane: self._write(lane, ()))

    async def move(self, index: int, moves: Callable[[Mapping[Partition, Position]], Moves]) -> None:
        """Change positions of a lane, given its current ones, with the operator's name.

        The segments follow afterwards, as the later one of overlapping segments decides; a lane without a topic of maps
        skips them.
        """

        async def write(lane: Lane) -> None:
            await self._require_still()
            change = moves(lane.checkpoint.positions)
            await lane.replace(change.positions, change.gaps, change.cut)
            if lane.keeps_offsets:
                await lane.remember_segments(change.segments)

        await self._in_lane(index, write)

    async def forget(self, index: int, topics: Collection[str]) -> None:
        """Delete the positions of topics, and their maps of offsets, from a lane."""

        async def write(lane: Lane) -> None:
            await self._require_still()
            segments = await segment_records(self.link.destination, lane.offsets)
            gone = [key for key in segments if key[0][0] in topics]
            await lane.forget([each for each in lane.checkpoint.positions if each[0] in topics], gone)

        await self._in_lane(index, write)

    async def _in_lane(self, index: int, write: Callable[[Lane], Awaitable[None]]) -> None:
        async def attempt() -> None:
            await write(await self.take(index))

        await retry_while_busy(attempt, is_passing)

    async def _require_still(self) -> None:
        """Let ``require`` see the newest states, once a lane is fenced."""
        await self._peek(0)
        self.require(self.states)

    async def _tell(self, index: int) -> None:
        """Copy the first lane's states to another lane."""
        states = dict(self.states)
        checkpoint = self.checkpoints[index]
        await self._peek(index)
        if checkpoint.states == states:
            return
        lane = await self.take(index)
        await self._peek(0)
        if self.states != states:
            raise LinkRefused("another command has changed the states of this link meanwhile: see `appliance status`")
        current = lane.checkpoint.states
        await self._write(lane, [record for topic, record in states.items() if current.get(topic) != record])

    async def take(self, index: int) -> Lane:
        """Fence a lane's owner, and read the lane's checkpoint."""
        owner, number = self._owner(), self.layout.number
        lane = Lane(index, self.link.destination, self.link.naming, owner, self.transaction_timeout, number)
        await lane.start()
        return lane

    def _owner(self) -> Owner:
        generation = max((c.owner.generation for c in self.checkpoints if c.owner), default=0)
        return Owner(OPERATOR, self.stamp.change, socket.gethostname(), now_ms(), generation)

    async def _write(self, lane: Lane, records: Collection[StateRecord]) -> None:
        """Write states with the operator's name; returns when they are visible.

        From that name a fenced replicator knows that its lane is still its own, and restarts it.
        """
        name = self.link.naming.positions_topic
        owner = encode_owner(lane.index, self._owner(), now_ms())
        await lane.remember([owner, *(encode_state(record, record.since) for record in records)])
        metadata = await self.link.destination.metadata([name])
        own = Partition(name, lane.index)
        end = (await list_offsets(self.link.destination, metadata, [own], Bound.END))[own]
        await retry_while_busy(lambda: self._require_read(lane.index, end))

    async def _require_read(self, lane: int, end: int) -> None:
        await self._peek(lane)
        if self.checkpoints[lane].read_to < end:
            raise OutcomeUnknown(f"lane {lane} does not show what it took", "CONCURRENT_TRANSACTIONS")
