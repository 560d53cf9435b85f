"""The partitions of a lane: each waits, is being checked, or is taken in: read, or stopped.

A partition of a topic that is paused, promoted, or about to be, is none of these: it is ignored until the lane
restarts.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.clock import loop_seconds, now_ms
from appliance.engine.model.admission import Facts, HeldBack, Verdict, judge, recreated_copy
from appliance.engine.model.chunk import dead_letters_of
from appliance.engine.problem_log import ProblemLog
from appliance.engine.read.buffer import Limits, ReadyQueue
from appliance.engine.read.source_reader import SourceReader
from appliance.engine.write.admission import FactReader
from appliance.engine.write.copies import UNFINISHED, SearchEnds
from appliance.engine.write.lane import Lane
from appliance.errors import ApplianceError, BrokerBusy, CopyRefused, CopyShortened, GapFound, PartitionStopped
from appliance.kafka.client.configs import WriteLimits
from appliance.kafka.client.interface import Cluster
from appliance.kafka.protocol.metadata import Metadata, is_another
from appliance.link.model.checkpoint import Gap, StartOffsets
from appliance.link.model.copy_states import CopyState, effective
from appliance.link.model.position import NO_PLACE, Loss, Position, SourcePlace
from appliance.link.model.replicas import Replica
from appliance.link.model.stops import FOLLOWING, SETTINGS

_PARTS = 16
"""Parts of a refused batch that are written one by one: each time that it is refused restarts the lane."""


@dataclass(slots=True)
class LanePartitions:
    """The partitions of one lane; those ``taken_in`` are read or stopped; with ``records_gaps`` no gap stops one.

    ``limits`` are those of the topics that it writes; ``refused`` are those of partitions of which a batch was refused.
    """

    lane: Lane
    source: Cluster
    reader: SourceReader
    ready: ReadyQueue
    problems: ProblemLog
    records_gaps: bool
    replicas: tuple[Replica, ...] = ()
    taken_in: set[Replica] = field(default_factory=set)
    limits: dict[str, WriteLimits] = field(default_factory=dict)
    refused: dict[Replica, Limits] = field(default_factory=dict)
    _held_back: HeldBack = field(default_factory=HeldBack)
    _starts: Mapping[str, StartOffsets] = field(default_factory=dict)
    _unwritable: set[Replica] = field(default_factory=set)
    _checks: dict[asyncio.Task[Facts], Sequence[Replica]] = field(default_factory=dict)
    _search_ends: SearchEnds = field(default_factory=dict)

    def assign(self, replicas: tuple[Replica, ...], starts: Mapping[str, StartOffsets]) -> None:
        """Copy only these from now on."""
        removed = set(self.replicas).difference(replicas)
        for replica in removed:
            self.problems.over(replica.name)
            self.refused.pop(replica, None)
        self.reader.forget(removed)
        self.taken_in -= removed
        self._unwritable -= removed
        self._held_back.keep(replicas)
        self.replicas, self._starts = replicas, starts
        active = self.taken_in.union(*self._checks.values())
        self._held_back.add_due(replica for replica in replicas if replica not in active)

    def restart(self) -> None:
        """Begin a lane's start: read nothing until the positions are known again."""
        self.reader.forget(self.replicas)
        self.taken_in.clear()
        for check in self._checks:
            check.cancel()
        self._checks.clear()
        self._held_back.add_due(self.replicas)

    async def close(self) -> None:
        """Cancel running admissions; they restart when the lane continues."""
        for check, replicas in self._checks.items():
            check.cancel()
            self._held_back.add_due(replicas)
        await asyncio.gather(*self._checks, return_exceptions=True)
        self._checks.clear()

    def pause(self) -> float:
        """Seconds until a partition is due; infinite if none waits."""
        return self._held_back.pause(loop_seconds())

    async def check_due(self) -> None:
        """Begin to check due partitions; safe to repeat after a cancel at any await.

        It runs beside the lane, one task for each leader of the copies: a silent leader delays no other's partitions.
        """
        due = self._held_back.due(loop_seconds())
        for replica in [replica for replica in due if not self._is_active(replica)]:
            self.problems.over(replica.name)
            self._held_back.went_well(replica)  # a change of its state restarts the lane
            due.remove(replica)
        if not due:
            self.problems.over(f"lane {self.lane.index} admission")
            return
        metadata = await self.lane.learn({replica.destination_topic for replica in due})
        if self.have_changed(metadata):
            self.lane.restart()
            return
        by_leader: dict[int, list[Replica]] = {}
        for replica in due:
            self._held_back.note_try(replica)
            by_leader.setdefault(metadata.leader(*replica.copy), []).append(replica)
        reader = FactReader(self.source, self.lane, self._starts, self.records_gaps, self._search_ends)
        for led in by_leader.values():
            facts = reader.read(led, metadata, self.lane.producer)
            check = asyncio.create_task(facts, name=f"lane-{self.lane.index}-admission")
            check.add_done_callback(lambda _: self.ready.set())
            self._checks[check] = led

    async def admit(self) -> None:
        """Take in the partitions checked by now."""
        done = [check for check in self._checks if check.done()]
        assigned, subject = set(self.replicas if done else ()), f"lane {self.lane.index} admission"
        for check in done:
            replicas = [replica for replica in self._checks.pop(check) if replica in assigned]
            try:
                facts = check.result()
            except ApplianceError as error:
                self.problems.tell(subject, error)
                for replica in replicas:
                    self._held_back.add(replica, loop_seconds())
            else:
                self.problems.over(subject)
                await self._take_in(replicas, facts)

    async def _take_in(self, replicas: Iterable[Replica], facts: Facts) -> None:
        admitted: dict[Replica, Verdict] = {}
        self.limits |= facts.limits
        for replica in replicas:
            verdict = judge(replica, facts)
            stop = verdict.stop
            if verdict.wait is not None:
                self.leave_out(replica, verdict.wait)
            elif isinstance(stop, CopyShortened) and not stop.is_known and not self.lane.can_cut_maps:
                self.leave_out(replica, stop)
            elif self.lane.is_led_as(replica.copy, facts.metadata):
                admitted[replica] = verdict
            else:
                self._held_back.add_due([replica])
        await self.lane.commit([], {each: verdict.position for each, verdict in admitted.items() if verdict.position})
        ends = facts.copies.ends
        self.lane.expect_ends({each.copy: ends[each.copy] for each in admitted if each.copy in ends}, facts.metadata)
        for replica, verdict in admitted.items():
            if verdict.stop is not None:
                await self.settle(replica, verdict.stop, facts.begins.places.get(replica.source, NO_PLACE))
            else:
                self._read(replica)
            self.taken_in.add(replica)
            if replica not in self._unwritable:
                self._held_back.went_well(replica)
                if not self.position(replica).stopped:
                    self.problems.over(replica.name)

    def leave_out(self, replica: Replica, error: ApplianceError) -> None:
        """Pause copying of a partition; the others continue."""
        self.problems.tell(replica.name, error)
        if replica in self.taken_in:
            self.reader.forget([replica])
            self.taken_in.discard(replica)
        if isinstance(error, BrokerBusy) and error.code == UNFINISHED:
            self._held_back.went_well(replica)
        self._held_back.add(replica, loop_seconds())

    def leave_out_unwritable(self, reasons: Mapping[tuple[str, int], ApplianceError]) -> bool:
        """Pause copying of unwritable partitions; False when none of the topics is this lane's."""
        unwritable = {
            replica: reasons[partition]
            for replica in self.replicas
            for partition in (dead_letters_of(replica), replica.copy)
            if partition in reasons
        }
        for replica, reason in unwritable.items():
            self._unwritable.add(replica)
            self.leave_out(replica, reason)
        return bool(unwritable)

    def wrote_to(self, replicas: Collection[Replica]) -> None:
        """Note that the copies of these took their batches."""
        for replica in replicas:
            self.problems.over(replica.name)
        for replica in self._unwritable.intersection(replicas):
            self._unwritable.discard(replica)
            self._held_back.went_well(replica)

    def refuse(self, error: CopyRefused) -> None:
        """Next time, stop before a record that the destination refuses, or look for it in its batch."""
        (replica,) = [each for each in self.replicas if error.partition in (each.copy, dead_letters_of(each))]
        offsets, topic = error.offsets, error.partition[0]
        size, refused_by = self.limits[replica.destination_topic].batch_bytes, (topic, self.limits.get(topic))
        remedy = f"; {SETTINGS[error.code]} of {topic}" if error.code in SETTINGS else ""
        text = f"{replica.name} offset {offsets.start} is refused: {error}{remedy}; {FOLLOWING} {offsets.stop}"
        position, before = self.position(replica), self.refused.get(replica, Limits())
        earlier_cuts = [offset for offset in before.cut if before.hold_at(position) and offset < offsets.start]
        parts = offsets[:: -(-len(offsets) // _PARTS)]
        text, cut = (text, (*earlier_cuts, *parts)) if len(parts) == 1 else ("", (*earlier_cuts, *parts, offsets.stop))
        self.refused[replica] = Limits(size, cut, text, refused_by, position)

    def take_in_again(self, replica: Replica) -> None:
        """Forget the refused batch of a partition, and read it from its position."""
        del self.refused[replica]
        if replica in self.taken_in:  # else it is being checked, or waits
            self.reader.forget([replica])
            self.taken_in.discard(replica)
            self._held_back.add_due([replica])

    def _is_active(self, replica: Replica) -> bool:
        """True when the lane's checkpoint, read after fencing, allows the copy to grow."""
        return effective(self.lane.checkpoint.states, replica.source_topic) is CopyState.ACTIVE

    def have_changed(self, metadata: Metadata) -> bool:
        """True when the leader or topic of a written copy has changed since its check."""
        recreated = any(recreated_copy(replica, metadata) for replica in self.taken_in)
        return recreated or self.lane.has_moved(metadata)

    def position(self, replica: Replica) -> Position:
        """The remembered position of a taken-in partition."""
        return self.lane.checkpoint.positions[replica.source]

    async def settle(self, replica: Replica, reason: PartitionStopped, begin: SourcePlace = NO_PLACE) -> None:
        """Remember why a partition stops; or record a gap and continue after it, if the operator chose that.

        ``begin`` is where it continues if the gap does not say. The gap and the position past it commit together
        (invariants A and F).
        """
        position = self.position(replica)
        if not (isinstance(reason, GapFound) and self.records_gaps):
            self.problems.tell(replica.name, reason)
            stopped, cut = position.stop(str(reason), now_ms()), False
            if isinstance(reason, CopyShortened):
                loss = Loss(reason.end, reason.is_known)
                stopped, cut = position.stop_shortened(str(reason), now_ms(), loss), not loss.is_known
            if stopped is not position:
                await self.lane.commit([], {replica: stopped}, cut=[replica] if cut else ())
            if refused := self.refused.get(replica):
                self.refused[replica] = replace(refused, position=self.position(replica))
            return
        begin = SourcePlace(reason.next, reason.leader_epoch) if reason.next >= 0 else begin
        first, following = reason.first, reason.next
        if following < 0 and not is_another(position.source_id, replica.source_id):
            # Only the copy is another: the source's records are copied again.
            first, following = min(first, begin.offset), begin.offset
        self.problems.tell(f"{replica.name} gap", _with_offsets(reason, first, following, replica, begin.offset))
        entry = Gap(replica.source, position.source_id, first, following, reason.cause, now_ms())
        moved = position.go_on().begin_again(replica.source_id, replica.destination_id, begin)
        await self.lane.commit([], {replica: moved}, [entry])
        self._read(replica)

    def _read(self, replica: Replica) -> None:
        position = self.position(replica)
        if not self.refused.get(replica, Limits()).hold_at(position):
            self.refused.pop(replica, None)
        limits = self.refused.get(replica) or Limits(self.limits[replica.destination_topic].batch_bytes)
        self.reader.read(replica, position.next_offset, position.leader_epoch, self.ready, limits)


def _with_offsets(gap: GapFound, first: int, following: int, replica: Replica, begin: int) -> ApplianceError:
    """The gap for the log: the topics' ids distinguish gaps that are otherwise alike."""
    offsets = f"offsets {first} to {following - 1}" if following >= 0 else f"offset {first} and what followed it"
    lost = "" if first == following else f"{offsets} will never be copied, "
    ids = f"topic id {replica.source_id}, copied to {replica.destination_id}"
    return ApplianceError(f"{gap}; {lost}it goes on from offset {begin} of {ids}")
