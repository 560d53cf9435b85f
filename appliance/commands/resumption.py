"""Resuming stopped partitions by the operator's command: retry, or continue elsewhere and record the gap.

The command takes the lane as a replicator would, with an epoch of its own, changes the positions, and leaves its name.
A running replicator finds its lane fenced by the operator and restarts it; no replicator has to be stopped or started.
"""

import socket
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from appliance.clock import now_ms
from appliance.commands.model.position_change import Change, Kind, Place, moved, no_position, retried
from appliance.driver.link_check import LinkCheck
from appliance.engine.model.admission import identity_fault
from appliance.engine.write.copies import as_found
from appliance.engine.write.lane import Lane
from appliance.errors import Fenced, LinkRefused, SettingsError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.offsets import Bound, epoch_ends, list_offsets, offsets_at
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.link.client.log_ends import EpochEnds, copy_logs, copy_losses
from appliance.link.client.source_places import places
from appliance.link.handle import Copies, Link
from appliance.link.model.agreement import lost_records
from appliance.link.model.checkpoint import OPERATOR, Owner
from appliance.link.model.claims import belongs_to_another
from appliance.link.model.copy_states import States, effective
from appliance.link.model.naming import Naming
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import UNACCOUNTED, UNKNOWN, CopyEnd, Loss, Position, SourcePlace
from appliance.link.model.replicas import Replica, lanes_of
from appliance.link.model.stops import Stop, StopKind
from appliance.settings.values import Settings

RETRY = "retry"
_BOUNDS = {Kind.EARLIEST: Bound.START, Kind.LATEST: Bound.STABLE_END}


@dataclass(frozen=True, slots=True)
class Choice:
    """The partitions to resume, and where: ``start`` is ``retry``, or a ``Place``; no ``topic`` is every one.

    With ``take_over`` a copy that belongs to another link becomes this link's.
    """

    topic: str
    partition: int | None
    start: str
    take_over: bool = False


Places = dict[Replica, SourcePlace]

Tell = Callable[[str], None]
"""Shows the operator a line."""


async def resume(settings: Settings, choice: Choice, tell: Tell, *, only_plan: bool = False) -> int:
    """Change the positions of the stopped partitions, or of the chosen one, stopped or not.

    Each change is shown before it is made; with ``only_plan`` none is made. Returns their number.

    Raises:
        SettingsError: there is no such partition, or the choice is invalid; or of all topics some need a place, and
            the others have gone on.
        LinkRefused: the link must not continue as it is, or the copy is another link's.
        Unreachable, BrokerBusy, BrokerRefused, Fenced: the lane where that happened is unchanged.
    """
    place = None if choice.start == RETRY else Place.parse("--from", choice.start)
    async with Link.open(settings) as link:
        source, destination, naming = link.source, link.destination, link.naming
        topic = await LinkCheck(source, destination, naming).fit_positions()
        positions = {key: held for each in topic.checkpoints for key, held in each.positions.items()}
        states, copies = topic.checkpoints[0].states, await link.copies()
        replicas, gone = _chosen(copies.matched.replicas, choice, positions)
        if choice.topic:
            _require_follow(states, [*replicas, *gone])
        replicas = [replica for replica in replicas if effective(states, replica.source_topic).follows]
        if choice.topic and not choice.take_over:
            require_own(copies, replicas, naming)
        taken = {replica.destination_topic: replica.destination_id for replica in replicas} if choice.topic else {}
        others = {copy: copies.others[copy] for copy in taken if copy in copies.others}
        owner = Owner(OPERATOR, uuid.uuid4().hex, socket.gethostname(), now_ms(), topic.generation - 1)
        starts = await source_places(source, replicas, place, "--from") if place else {}
        starts |= dict.fromkeys(gone, SourcePlace(0, -1)) if place else {}
        faults: list[str] = []

        async def changes(replicas: Sequence[Replica], held: Mapping[Partition, Position]) -> list[Change]:
            if place or choice.partition is not None:  # any other retry accepts only what was shown by a stop
                held = await with_losses(destination, naming, held, replicas, moves=place is not None)
            planned_changes = _changes(replicas, held, starts, choice, faults)
            return await with_divergence(source, planned_changes) if place else planned_changes

        planned_changes = {change.replica: change for change in await changes([*replicas, *gone], positions)}
        planned = lanes_of(planned_changes, topic.layout)
        if faults and choice.topic:
            raise SettingsError(faults)
        lines = [f"{copy} is taken over from {claim.link}: stop that link first" for copy, claim in others.items()]
        lines += [str(planned_changes[replica]) for owned in planned.values() for replica in owned]
        for line in lines:
            tell(line)
        if others and not only_plan:
            await link.registry.claim(taken, take_over=True)

        async def change(index: int) -> None:
            timeout = settings.engine.transaction_timeout
            lane = Lane(index, destination, naming, owner, timeout, topic.layout.number)
            await lane.start()
            _require_follow(lane.checkpoint.states, planned[index])
            await _commit(lane, await with_ends(destination, await changes(planned[index], lane.checkpoint.positions)))

        for index in [] if only_plan else planned:
            try:
                await change(index)
            except Fenced:  # by a replicator that takes in just now what was claimed for it
                await change(index)
        if faults:
            raise SettingsError(faults)
        return len(lines)


def _require_follow(states: States, replicas: Iterable[Replica]) -> None:
    """Refuse a copy that is promoted, or about to be: its position says how far it was copied, and must not move."""
    for topic in {replica.source_topic for replica in replicas}:
        if not (state := effective(states, topic)).follows:
            raise LinkRefused(f"topic {topic} is {state}: its positions are not changed by hand")


def _chosen(
    discovered: Iterable[Replica], choice: Choice, positions: Mapping[Partition, Position]
) -> tuple[list[Replica], list[Replica]]:
    """The chosen partitions; and those that a topic no longer has since it was recreated with fewer."""
    replicas = [
        r for r in discovered if choice.topic in ("", r.source_topic) and choice.partition in (None, r.partition)
    ]
    first = {replica.source_topic: replica for replica in discovered if replica.partition == 0}
    there = {replica.source for replica in discovered}
    former = [key for key in sorted(positions.keys() - there) if key[0] == choice.topic and key[0] in first]
    gone = [replace(first[key[0]], partition=key[1]) for key in former if choice.partition in (None, key[1])]
    gone = [each for each in gone if is_another(positions[each.source].source_id, each.source_id)]
    if choice.topic and not (replicas or gone):
        raise SettingsError([f"--topic {choice.topic}: this link copies no such topic or partition"])
    return replicas, gone


def require_own(copies: Copies, replicas: Iterable[Replica], naming: Naming) -> None:
    """Refuse partitions whose copies belong to other links."""
    for replica in replicas:
        if claim := copies.others.get(replica.destination_topic):
            raise LinkRefused(belongs_to_another(replica.destination_topic, claim, naming))


async def source_places(source: KafkaCluster, replicas: Collection[Replica], place: Place, option: str) -> Places:
    """The place at which each partition continues; past its last record if none is as new as the time.

    That is the log's start where the offset is older: retention may have passed one that was printed.

    Raises:
        SettingsError: a partition ends before the offset.
    """
    metadata = await source.metadata(sorted({replica.source_topic for replica in replicas}))
    partitions = [replica.source for replica in replicas]
    offsets = await list_offsets(source, metadata, partitions, _BOUNDS.get(place.kind, Bound.STABLE_END))
    if place.kind is Kind.TIME:
        at = await offsets_at(source, metadata, partitions, place.number)
        offsets |= {key: offset for key, offset in at.items() if offset is not None}
    elif place.kind is Kind.OFFSET:
        first = await list_offsets(source, metadata, partitions, Bound.START)
        for key in partitions:
            if place.number > offsets[key]:
                what = f"{key} holds offsets {first[key]} to {offsets[key]}"
                expected = "expected one of these; --partition names one partition"
                raise SettingsError([f"{option} {place.text}: {what}: {expected}"])
        offsets = {key: max(first[key], place.number) for key in partitions}
    known_places = await places(source, metadata, offsets)
    return {replica: known_places[replica.source] for replica in replicas}


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


async def with_losses(
    destination: KafkaCluster,
    naming: Naming,
    positions: Mapping[Partition, Position],
    replicas: Iterable[Replica],
    *,
    moves: bool = True,
) -> dict[Partition, Position]:
    """The positions, stopped where a copy has lost records and no lane has seen it yet: as the status shows them.

    If the positions are to be moved, also where a copy had stopped for records that nobody accounts for.
    """
    own = {each.source: positions[each.source] for each in replicas if each.source in positions}
    going = {
        k: position
        for k, position in own.items()
        if not position.stopped or (moves and position.has_stopped_for(UNACCOUNTED))
    }
    metadata = await destination.metadata(sorted({naming.destination(topic) for topic, _ in going}))
    judged = dict(positions)
    for key, log in (await copy_logs(EpochEnds(destination), metadata, naming, going)).items():
        position, end = going[key], going[key].copy_end
        if end and not log.doubt(end) and log.topic_id == position.destination_id and (loss := log.loss(end)):
            reason = "; ".join(filter(None, (position.stopped, lost_records(log.partition, end, loss))))
            judged[key] = position.stop_shortened(reason, now_ms(), loss)
    return judged


async def with_divergence(source: KafkaCluster, changes: Sequence[Change]) -> list[Change]:
    """The same, with the offsets from which on a truncated source holds other records than were copied."""
    before = {change.replica.source: change.held for change in changes if change.is_known}
    metadata = await source.metadata(sorted({topic for topic, _ in before}))
    epochs = {key: position.leader_epoch for key, position in before.items() if position.leader_epoch >= 0}
    ends, _ = await epoch_ends(source, metadata, epochs)
    ends = {key: end for key, end in ends.items() if 0 <= end < before[key].next_offset}
    return [replace(change, diverged=ends.get(change.replica.source)) for change in changes]


async def with_ends(destination: KafkaCluster, changes: Sequence[Change]) -> list[Change]:
    """The same, with the current ends of copies whose end was unknown: later losses are noticed (J).

    A copy may have lost more since it was stopped for a loss: its map ends where its records end now.
    """
    unknown = {change.replica.copy: change.lost_end for change in changes if change.after.copy_end is None}
    metadata = await destination.metadata(sorted({topic for topic, _ in unknown}))
    lacking = {copy for copy in unknown if (topic := metadata.topics.get(copy[0])) and copy[1] >= len(topic.leaders)}
    unknown = {copy: end for copy, end in unknown.items() if copy not in lacking}
    ends = await list_offsets(destination, metadata, unknown, Bound.END)
    lost = await copy_losses(destination, metadata, {copy: end for copy, end in unknown.items() if end is not None})
    new_ends = {copy: as_found(end, metadata, copy) for copy, end in ends.items()}
    return [_with_end(change, new_ends.get(change.replica.copy), lost.get(change.replica.copy)) for change in changes]


def _with_end(change: Change, end: CopyEnd | None, loss: Loss | None) -> Change:
    """A change with the end of its copy, and with a map up to the offset from which on that copy has lost records."""
    after = change.after if end is None else replace(change.after, copy_end=end)
    if loss is None:
        return replace(change, after=after)
    if not loss.is_known or after.tail is None or after.tail.copy_to > loss.end:
        after = replace(after, tail=OffsetTail.begin(after.next_offset, loss.end))
    return replace(change, after=after, cut=not loss.is_known)


async def _commit(lane: Lane, changes: Sequence[Change]) -> None:
    gaps = [gap for change in changes if (gap := change.gap(now_ms()))]
    cut = [change.replica for change in changes if change.cut]
    await lane.replace({change.replica: change.after for change in changes}, gaps, cut)
