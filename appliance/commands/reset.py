"""A reset: copying continues elsewhere in the source, by the operator's explicit command (invariant D).

1. The topics are ``resetting`` in every lane, with the offsets in the record: nothing is copied, and one place holds.
2. Every lane's positions move there. Skipped offsets go to the gap ledger in the same transaction (invariant F).
3. The topics return to their state before, active or paused.

After a kill anywhere, the same command continues with the offsets of the first run, and moves no position twice.
"""

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

from appliance.clock import now_ms
from appliance.commands.model.position_change import PLACES, Change, Kind, Place, moved
from appliance.commands.model.reset_report import ResetReport, numbers
from appliance.commands.run.link_lanes import Moves
from appliance.commands.run.operation import Operation
from appliance.commands.run.position_facts import require_own, source_places, with_divergence, with_ends, with_losses
from appliance.commands.run.runner import Plan, Work, add_options, constant, run_with
from appliance.engine.model.admission import identity_fault
from appliance.errors import LinkRefused, SettingsError
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyEvent, CopyState, StateRecord, States, effective
from appliance.link.model.link_check import cluster_fault
from appliance.link.model.position import UNKNOWN, Position, SourcePlace
from appliance.link.model.replicas import DiscoveredTopics, Replica, lanes_of, too_small
from appliance.listing import counted, some
from appliance.program import command_line, quoted, topic_option
from appliance.runtime.command import Command

_OPTION = "--to"
_NAMED = 10
_GONE = "it is not at the source, or has no copy"

_IDENTITY = attrgetter("source_id", "destination_id", "next_offset", "stopped", "copy_end")

_TO, _PARTITION, _BEFORE, _OFFSETS, _EPOCHS = "to", "partition", "before", "offsets", "epochs"
"""Details of the state: the command's options, the state before, and the place of each partition."""


async def reset(operation: Operation, place: Place, number: int | None) -> Plan[ResetReport]:
    """Set the offsets where the chosen topics, or one partition of each, continue."""
    lanes, run = operation.lanes, _Run(operation, place, number)
    await lanes.read()
    await run.find()
    ended = run.ended()
    changes = [each for each in await run.changes() if each.replica.source_topic not in ended]
    fresh = sorted({change.replica.source_topic for change in changes} - run.unfinished())

    async def apply() -> ResetReport:
        if ended:
            await lanes.change((), CopyEvent.POSITIONED)
        topics = sorted({*fresh, *run.unfinished()})
        if not topics:
            return run.report(())
        await lanes.change(topics, CopyEvent.RESET, run.details)  # a killed run may not have reached every lane
        moved_now = await run.move(topics)
        await run.finish(topics)
        return run.report(moved_now)

    foreseen = constant(run.report(changes))
    if not fresh:
        return Plan(foreseen, apply)
    announced = ResetReport(operation.naming.replicator, True, changes).lines()
    return Plan(foreseen, apply, f"reset {counted(len(fresh), 'topic')} to {place.text}: {numbers(changes)}", announced)


@dataclass(slots=True)
class _Run:
    """One run of the command on these ``topics``: ``places`` is where each partition continues."""

    operation: Operation
    place: Place
    number: int | None
    places: dict[Replica, SourcePlace] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)

    async def find(self) -> None:
        """Find the partitions of the chosen topics, and their places; an interrupted reset has recorded its own."""
        operation = self.operation
        copies = await operation.link.copies()
        if fault := cluster_fault(operation.lanes.checkpoints[0].link, copies.source.cluster_id):
            raise LinkRefused(fault)
        discovered = copies.matched
        names = {topic for topic, _ in operation.lanes.positions} | {each.source_topic for each in discovered.replicas}
        self.topics = topics = self._chosen(discovered, names)
        self._require_fit(discovered, topics)
        self._require_resettable(topics)
        replicas = [each for each in discovered.replicas if each.source_topic in topics]
        replicas = [each for each in replicas if self.number in (None, each.partition)]
        if not replicas:
            raise SettingsError([f"--partition {self.number}: no chosen topic has such a partition"])
        require_own(copies, replicas, operation.naming)
        unfinished = self.unfinished()
        fresh = [replica for replica in replicas if replica.source_topic not in unfinished]
        self.places = await source_places(operation.source, fresh, self.place, _OPTION) if fresh else {}
        for replica in replicas:
            if (place := self._recorded(replica)) is not None:
                self.places[replica] = place

    def _chosen(self, discovered: DiscoveredTopics, names: Collection[str]) -> set[str]:
        """The topics of the command; without a choice, all but abandoned and deleted ones."""
        chosen = self.operation.choice.subjects(names)
        if chosen is not None:
            return set(chosen)
        left_out = {name for name in names if effective(self.operation.lanes.states, name) is CopyState.REMOVED}
        gone = {*names} - _there(discovered) - left_out
        for topic in sorted(gone):
            self.operation.tell(f"{topic}: left as it is: {_GONE}")
        return {*names} - left_out - gone

    def _require_fit(self, discovered: DiscoveredTopics, topics: Collection[str]) -> None:
        faults = [f"{topic}: {reason}" for topic, reason in discovered.unfit.items() if topic in topics]
        faults += [too_small(topic, copy) for topic, copy in discovered.smaller if topic.name in topics]
        faults += [f"{topic}: {_GONE}" for topic in sorted({*topics} - _there(discovered))]
        if faults:
            raise LinkRefused("cannot be reset: " + some(faults, _NAMED, "; "))

    def _require_resettable(self, topics: Collection[str]) -> None:
        states = self.operation.lanes.states
        for topic in sorted(topics):
            state = effective(states, topic)
            if state is CopyState.RESETTING:
                self._require_same(states[topic])
            elif not state.follows:
                raise LinkRefused(f"topic {topic} is {state}: its positions are not changed by hand")

    def _require_same(self, record: StateRecord) -> None:
        details = record.details
        if not self._is_same(record):
            words = ["reset", topic_option(record.topic), f"--to={details.get(_TO)}"]
            words += [] if details.get(_PARTITION) is None else [f"--partition={details[_PARTITION]}"]
            ends_it = f"`{command_line(' '.join(map(quoted, words)))}` ends it"
            raise LinkRefused(f"another reset of {record.topic}, by {record.by}, has not ended: {ends_it}")

    def _is_same(self, record: StateRecord) -> bool:
        """True of a reset with the options of this one."""
        return (record.details.get(_TO), record.details.get(_PARTITION)) == (self.place.text, self.number)

    def unfinished(self) -> set[str]:
        """The chosen topics that are being reset."""
        states = self.operation.lanes.states
        return {name for name in self.topics & states.keys() if states[name].state is CopyState.RESETTING}

    def ended(self) -> set[str]:
        """The chosen topics whose reset by this command has ended, though a kill kept the news from some lanes."""
        lanes, unfinished = self.operation.lanes, self.unfinished()
        recorded = [record for checkpoint in lanes.checkpoints for record in checkpoint.states.values()]
        same = [each for each in recorded if each.state is CopyState.RESETTING and self._is_same(each)]
        return {each.topic for each in same if self.operation.choice.takes(each.topic)} - unfinished

    def _recorded(self, replica: Replica) -> SourcePlace | None:
        """The place of a started reset."""
        record = self.operation.lanes.states.get(replica.source_topic)
        if record is None or record.state is not CopyState.RESETTING:
            return None
        recorded = [dict(record.details.get(name, ())).get(replica.partition, UNKNOWN) for name in (_OFFSETS, _EPOCHS)]
        return None if recorded[0] == UNKNOWN else SourcePlace(*recorded)

    def details(self, topic: str, before: CopyState) -> Mapping[str, Any]:
        """The details of a topic's record, from which another run continues."""
        found = [(each.partition, *place) for each, place in self.places.items() if each.source_topic == topic]
        options = {_TO: self.place.text, _PARTITION: self.number, _BEFORE: before}
        return {**options, _OFFSETS: [[n, at] for n, at, _ in found], _EPOCHS: [[n, epoch] for n, _, epoch in found]}

    async def changes(self) -> list[Change]:
        """The changes still to make."""
        operation, positions = self.operation, self.operation.lanes.positions
        positions = await with_losses(operation.destination, operation.naming, positions, self.places)
        changes = [self._change(replica, to, positions) for replica, to in self.places.items()]
        return await with_divergence(operation.source, [each for each in changes if each])

    def _change(self, replica: Replica, to: SourcePlace, positions: Mapping[Partition, Position]) -> Change | None:
        """The change of one partition; None where it continues from that offset anyway."""
        position = positions.get(replica.source)
        new = moved(replica, position, to, from_first=self.place.kind is Kind.EARLIEST)
        is_there = position is not None and position.next_offset == to.offset and not position.stopped
        return None if is_there and not identity_fault(replica, new.position) else new

    async def move(self, topics: Sequence[str]) -> list[Change]:
        """Move the positions of the topics in every lane; the changes made by this run."""
        lanes = self.operation.lanes
        self._require_begun(topics)
        lanes.require = self._still_so(topics)
        replicas = [each for each in self.places if each.source_topic in topics]
        self.places = {each: place for each in replicas if (place := self._recorded(each)) is not None}
        changes = await with_ends(self.operation.destination, await self.changes())
        by_replica = {each.replica: each for each in changes}
        for index, owned in lanes_of(by_replica, lanes.layout).items():
            await lanes.move(index, partial(self._moves, [by_replica[replica] for replica in owned]))
        return changes

    def _require_begun(self, topics: Sequence[str]) -> None:
        states = self.operation.lanes.states
        for topic in topics:
            if (record := states.get(topic)) is None or record.state is not CopyState.RESETTING:
                raise LinkRefused(f"another command has made {topic} {effective(states, topic)} meanwhile")
            self._require_same(record)

    def _still_so(self, topics: Sequence[str]) -> Callable[[States], None]:
        """Refuse where another run has ended or abandoned the reset: its lanes copy again."""
        began = {topic: self.operation.lanes.states[topic].change for topic in topics}

        def require(states: States) -> None:
            for topic, change_id in began.items():
                record = states.get(topic)
                ours = record is not None and record.change == self.operation.lanes.stamp.change
                is_begun = record is not None and record.change == change_id and record.state is CopyState.RESETTING
                if not (ours or is_begun):
                    raise LinkRefused(f"another command has ended the reset of {topic}: see `appliance status`")

        return require

    @staticmethod
    def _moves(changes: Sequence[Change], positions: Mapping[Partition, Position]) -> Moves:
        """The moves of a lane, without those of an earlier try."""
        unmade = [each for each in changes if not _is_made(each, positions.get(each.replica.source))]
        gaps = [gap for each in unmade if (gap := each.gap(now_ms()))]
        return Moves(
            {each.replica: each.after for each in unmade}, gaps, cut=[each.replica for each in unmade if each.cut]
        )

    async def finish(self, topics: Sequence[str]) -> None:
        """Return the topics to their state before."""
        lanes = self.operation.lanes
        paused = {topic for topic in topics if lanes.states[topic].details.get(_BEFORE) == CopyState.PAUSED}
        if paused:  # first: the same command finds nothing more to move in these
            await lanes.change(sorted(paused), CopyEvent.POSITIONED_PAUSED)
        if active := sorted({*topics} - paused):
            await lanes.change(active, CopyEvent.POSITIONED)

    def report(self, changes: Sequence[Change]) -> ResetReport:
        """The outcome, or in a dry run the plan."""
        states = self.operation.lanes.states
        topics = sorted({each.replica.source_topic for each in changes})
        paused = [topic for topic in topics if effective(states, topic) is CopyState.PAUSED]
        return ResetReport(self.operation.naming.replicator, self.operation.choice.dry_run, changes, paused)


def _there(discovered: DiscoveredTopics) -> set[str]:
    """The existing source topics, with a copy or with a fault."""
    return {
        *discovered.unfit,
        *(each.source_topic for each in discovered.replicas),
        *(each.name for each, _ in discovered.smaller),
    }


def _is_made(change: Change, position: Position | None) -> bool:
    """True if an earlier try has made the change."""
    return position is not None and _IDENTITY(position) == _IDENTITY(change.after)


def _reset_options(command: argparse.ArgumentParser) -> None:
    add_options(command, "only these source topics (default: all)")
    command.add_argument("--partition", type=int, metavar="N", help="only this partition of each topic")
    command.add_argument("--to", required=True, metavar="WHERE", help=PLACES)


def _reset(parsed: argparse.Namespace) -> Work[ResetReport]:
    return partial(reset, place=Place.parse("--to", parsed.to), number=parsed.partition)


RESET = Command(
    "Sets where copying goes on. Forwards, the offsets that are left out go to the gap ledger. Backwards, records are "
    "copied again, behind those that the copy holds. Both are printed by number first. A topic that is promoted, or on "
    "its way, is refused. Killed anywhere, the same command again ends it at the same offsets.",
    run_with(_reset),
    _reset_options,
)
