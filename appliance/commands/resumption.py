"""Resuming stopped partitions by the operator's command: retry, or continue elsewhere and record the gap.

The command takes the lane as a replicator would, with an epoch of its own, changes the positions, and leaves its name.
A running replicator finds its lane fenced by the operator and restarts it; no replicator has to be stopped or started.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.clock import now_ms
from appliance.commands.model.position_change import Change, Kind, Place, moved, no_position, retried
from appliance.commands.run import operation
from appliance.commands.run.position_facts import (
    Places,
    require_own,
    source_places,
    with_divergence,
    with_ends,
    with_losses,
)
from appliance.driver.link_check import LinkCheck
from appliance.engine.model.admission import identity_fault
from appliance.engine.write.lane import Lane
from appliance.errors import Fenced, LinkRefused, SettingsError, UnknownTopic
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.link.handle import Copies
from appliance.link.model.copy_states import States, effective
from appliance.link.model.position import UNKNOWN, Position, SourcePlace
from appliance.link.model.replicas import Replica, lanes_of
from appliance.link.model.stops import Stop, StopKind
from appliance.link.model.topic_choice import options_of, require_names, takes
from appliance.settings.values import Settings

RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Choice:
    """The partitions to resume, and where: ``start`` is ``retry``, or a ``Place``; no ``topic`` is every one.

    With ``take_over`` a copy that belongs to another link becomes this link's.
    """

    topic: str
    partition: int | None
    start: str
    take_over: bool = False


Tell = Callable[[str], None]
"""Shows the operator a line."""


async def resume(settings: Settings, choice: Choice, tell: Tell, *, only_plan: bool = False) -> int:
    """Change the positions of the stopped partitions, or of the chosen one, stopped or not.

    Each change is shown before it is made; with ``only_plan`` none is made. Returns their number. If of all topics some
    need a place, the others go on, and a SettingsError names them. After Fenced the lane is as before.
    """
    place = None if choice.start == RETRY else Place.parse("--from", choice.start)
    async with operation.operation(settings, operation.Choice(dry_run=only_plan), tell) as running:
        await running.lanes.read(await LinkCheck(running.link).fit_positions())
        copies, run = await running.link.copies(), _Run(running, choice, place)
        replicas, gone = run.chosen(copies)
        taken = {replica.destination_topic: replica.destination_id for replica in replicas} if choice.topic else {}
        others = {copy: copies.others[copy] for copy in taken if copy in copies.others}
        planned = await run.plan(replicas, gone)
        lines = [f"{copy} is taken over from {claim.link}: stop that link first" for copy, claim in others.items()]
        lines += [str(change) for changes in planned.values() for change in changes]
        for line in lines:
            tell(line)
        if others and not only_plan:
            await running.link.registry.claim(taken, take_over=True)
        for index, changes in {} if only_plan else planned.items():
            await run.change(index, [change.replica for change in changes])
        if run.faults:
            raise SettingsError(run.faults)
        return len(lines)


@dataclass(slots=True)
class _Run:
    """One run of the command.

    ``starts`` are the places where partitions go on, if the operator names one; ``faults`` are of those that need it.
    """

    operation: operation.Operation
    choice: Choice
    place: Place | None
    starts: Places = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def chosen(self, copies: Copies) -> tuple[list[Replica], list[Replica]]:
        """The partitions to resume; and those that a topic no longer has since it was recreated with fewer."""
        states = self.operation.lanes.states
        replicas, gone = _chosen(copies.matched.replicas, self.choice, self.operation.lanes.positions)
        if self.choice.topic:
            _require_follow(states, [*replicas, *gone])
        replicas = [replica for replica in replicas if effective(states, replica.source_topic).follows]
        if self.choice.topic and not self.choice.take_over:
            require_own(copies, replicas, self.operation.naming)
        return replicas, gone

    async def plan(self, replicas: Sequence[Replica], gone: Sequence[Replica]) -> dict[int, list[Change]]:
        """The changes, by lane."""
        lanes = self.operation.lanes
        if self.place:
            self.starts = await source_places(self.operation.source, replicas, self.place, "--from")
            self.starts |= dict.fromkeys(gone, SourcePlace(0, -1))
        changes = {each.replica: each for each in await self._changes([*replicas, *gone], lanes.positions)}
        if self.faults and self.choice.topic:
            raise SettingsError(self.faults)
        by_lane = lanes_of(changes, lanes.layout)
        return {index: [changes[replica] for replica in owned] for index, owned in by_lane.items()}

    async def _changes(self, replicas: Sequence[Replica], positions: Mapping[Partition, Position]) -> list[Change]:
        link, moves = self.operation.link, self.place is not None
        if moves or self.choice.partition is not None:  # any other retry accepts only what was shown by a stop
            positions = await with_losses(link.destination, link.naming, positions, replicas, moves=moves)
        changes = _changes(replicas, positions, self.starts, self.choice, self.faults)
        return await with_divergence(link.source, changes) if moves else changes

    async def change(self, index: int, replicas: Sequence[Replica]) -> None:
        """Fence a lane, and change its positions as they are then."""
        try:
            await self._change(index, replicas)
        except Fenced:  # by a replicator that takes in just now what was claimed for it
            await self._change(index, replicas)

    async def _change(self, index: int, replicas: Sequence[Replica]) -> None:
        lane = await self.operation.lanes.take(index)
        _require_follow(lane.checkpoint.states, replicas)
        changes = await self._changes(replicas, lane.checkpoint.positions)
        await _commit(lane, await with_ends(self.operation.destination, changes))


def _require_follow(states: States, replicas: Iterable[Replica]) -> None:
    """Refuse a copy that is promoted, or about to be: its position says how far it was copied, and must not move."""
    for topic in {replica.source_topic for replica in replicas}:
        if not (state := effective(states, topic)).follows:
            raise LinkRefused(f"topic {topic} is {state}: its positions are not changed by hand")


def _chosen(
    discovered: Iterable[Replica], choice: Choice, positions: Mapping[Partition, Position]
) -> tuple[list[Replica], list[Replica]]:
    """The chosen partitions; and those that a topic no longer has since it was recreated with fewer."""
    none = "this link copies no such topic or partition"
    if choice.topic and (choice.partition is not None or choice.start != RETRY or choice.take_over):
        require_names(choice.topic, {replica.source_topic for replica in discovered}, none)
    replicas = [
        r for r in discovered if takes(choice.topic, r.source_topic) and choice.partition in (None, r.partition)
    ]
    first = {replica.source_topic: replica for replica in discovered if replica.partition == 0}
    existing = {replica.source for replica in discovered}
    named = {topic for topic in first if choice.topic and takes(choice.topic, topic)}
    former = [key for key in sorted(positions.keys() - existing) if key[0] in named]
    gone = [replace(first[key[0]], partition=key[1]) for key in former if choice.partition in (None, key[1])]
    gone = [each for each in gone if is_another(positions[each.source].source_id, each.source_id)]
    if choice.topic and not (replicas or gone):
        raise UnknownTopic([f"{options_of(choice.topic)}: {none}"])
    return replicas, gone


def _changes(
    replicas: Iterable[Replica],
    positions: Mapping[Partition, Position],
    starts: Places,
    choice: Choice,
    faults: list[str],
) -> list[Change]:
    """The chosen changes: of stopped partitions, of recreated and named ones, of all of a copy that is taken over.

    ``faults`` gets those that need a place: a retry at the same offset is impossible, or would stop there again.
    """
    changes = []
    for replica in replicas:
        position = positions.get(replica.source) or no_position(replica)
        reason = position.stopped or str(
            identity_fault(replica, position) or ""
        )  # or that which its lane is about to find
        anew = choice.take_over or is_another(position.source_id, replica.source_id)
        if not (position.stopped or choice.partition is not None or (anew and replica in starts)):
            continue
        if replica in starts:
            first = choice.start == Kind.EARLIEST.value
            changes.append(moved(replica, position, starts[replica], from_first=first))
        elif position.next_offset == UNKNOWN or Stop(reason, "").kind.needs_place:
            stop = Stop(reason or StopKind.NO_POSITION.words, *replica.source, position.next_offset)
            faults.append(f"{replica.name}: {stop.reason}: {'; or '.join(map(str, stop.remedies))}")
        else:
            changes.append(retried(replica, position))
    return changes


async def _commit(lane: Lane, changes: Sequence[Change]) -> None:
    gaps = [gap for change in changes if (gap := change.gap(now_ms()))]
    cut = [change.replica for change in changes if change.cut]
    await lane.replace({change.replica: change.after for change in changes}, gaps, cut)
