"""Resuming stopped partitions by the operator's command: retry, or continue elsewhere and record the gap.

The command takes the lane as a replicator would, with an epoch of its own, changes the positions, and leaves its name.
A running replicator finds its lane fenced by the operator and restarts it; no replicator has to be stopped or started.
"""

import socket
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from appliance.errors import BrokerBusy, LinkRefused, SettingsError
from appliance.kafka.client.clock import now_ms
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.offsets import Bound, list_offsets, offsets_at
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.client.log_ends import copy_losses
from appliance.link.client.registry import Registry
from appliance.link.client.source_places import places
from appliance.link.model.checkpoint import OPERATOR, Gap, Owner
from appliance.link.model.claims import Claim, belongs_to_another
from appliance.link.model.copy_states import States, effective
from appliance.link.model.naming import Naming
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import LOST, NO_PLACE, UNACCOUNTED, UNKNOWN, CopyEnd, Loss, Position, SourcePlace
from appliance.link.model.replicas import Replica, discover, lanes_of
from appliance.replicator.establish import Establishing
from appliance.replicator.model.position_change import Change, Kind, Place, gap, lost_end, moved
from appliance.replicator.write.copies import as_found
from appliance.replicator.write.lane import Lane
from appliance.settings.values import Settings

RETRY = "retry"
_BOUNDS = {Kind.EARLIEST: Bound.START, Kind.LATEST: Bound.STABLE_END}


@dataclass(frozen=True, slots=True)
class Choice:
    """The partitions to resume, and where: ``start`` is ``retry``, or a ``Place``.

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
        SettingsError: there is no such partition, or the choice is invalid.
        LinkRefused: the link must not continue as it is, or the copy is another link's.
        Unreachable, BrokerBusy, BrokerRefused, Fenced: the lane where that happened is unchanged.
    """
    place = None if choice.start == RETRY else Place.parse("--from", choice.start)
    naming = Naming.of(settings)
    async with source_cluster(settings) as source, destination_cluster(settings) as destination:
        replicas = await _replicas(source, destination, naming, choice)
        registry = Registry(destination, naming.replicator, shares=naming.shared, topics=naming.topics)
        others = await _others(registry, replicas, choice, naming)
        topic = await Establishing(settings, source, destination, OPERATOR).checked()
        owner = Owner(OPERATOR, uuid.uuid4().hex, socket.gethostname(), now_ms(), topic.generation - 1)
        _require_follows(topic.checkpoints[0].states, choice)
        starts = await source_places(source, replicas, place, "--from") if place else {}
        planned = {
            index: _changes(owned, topic.checkpoints[index].positions, starts, choice)
            for index, owned in lanes_of(replicas, topic.layout).items()
        }
        changes = [change for lane in planned.values() for change in lane]
        lines = [f"{copy} is taken over from {claim.link}: stop that link first" for copy, claim in others.items()]
        for line in [*lines, *map(str, changes)]:
            tell(line)
        if only_plan:
            return len(lines) + len(changes)
        if others:
            copies = {replica.destination_topic: replica.destination_id for replica in replicas}
            await registry.claim(copies, take_over=True)
        for index in [index for index, planned_changes in planned.items() if planned_changes]:
            timeout = settings.engine.transaction_timeout
            lane = Lane(index, destination, naming, owner, timeout, topic.layout.number)
            await lane.start()
            _require_follows(lane.checkpoint.states, choice)
            owned = [change.replica for change in planned[index]]
            changed = _changes(owned, lane.checkpoint.positions, starts, choice)
            await _commit(lane, await with_ends(destination, changed), choice)
        return len(lines) + len(changes)


async def adopt_positions(settings: Settings, tell: Tell, *, only_plan: bool = False) -> int:
    """Let the link continue with its positions topic as it is now; the number of changes.

    Raises:
        LinkRefused: something else prevents the link from continuing.
        Fenced, Unreachable, BrokerBusy, BrokerRefused: a repeated call continues.
    """
    async with source_cluster(settings) as source, destination_cluster(settings) as destination:
        establishing = Establishing(settings, source, destination, OPERATOR)
        fault = await establishing.fault(await establishing.look())
        if not fault:
            return 0
        tell(fault)
        done = [] if only_plan else await establishing.adopt()
        for line in done:
            tell(line)
        return max(len(done), 1)


def _require_follows(states: States, choice: Choice) -> None:
    """Refuse a copy that is promoted, or about to be: its position says how far it was copied, and must not move.

    Raises:
        LinkRefused: the copy is one of these.
    """
    if not (state := effective(states, choice.topic)).follows:
        raise LinkRefused(f"topic {choice.topic} is {state}: its positions are not changed by hand")


async def _replicas(source: KafkaCluster, destination: KafkaCluster, naming: Naming, choice: Choice) -> list[Replica]:
    found = discover(await source.metadata(None), await destination.metadata(None), naming)
    replicas = [r for r in found.replicas if r.source_topic == choice.topic]
    replicas = [r for r in replicas if choice.partition in (None, r.partition)]
    if not replicas:
        raise SettingsError([f"--topic {choice.topic}: {naming.replicator} copies no such topic or partition"])
    return replicas


async def _others(registry: Registry, replicas: Sequence[Replica], choice: Choice, naming: Naming) -> dict[str, Claim]:
    """The copies that belong to other links, which the choice takes over."""
    await registry.refresh()
    others = registry.of_others({replica.destination_topic: replica.destination_id for replica in replicas})
    for copy, claim in others.items():
        if not choice.take_over:
            raise LinkRefused(belongs_to_another(copy, claim, naming))
    return others


async def source_places(source: KafkaCluster, replicas: Collection[Replica], place: Place, option: str) -> Places:
    """The place at which each partition continues; past its last record if none is as new as the time.

    Raises:
        SettingsError: a partition lacks the offset.
        Unreachable, BrokerBusy, BrokerRefused: as everywhere.
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
            if not first[key] <= place.number <= offsets[key]:
                what = f"{key[0]}-{key[1]} holds offsets {first[key]} to {offsets[key]}"
                expected = "expected one of these; --partition names one partition"
                raise SettingsError([f"{option} {place.text}: {what}: {expected}"])
        offsets = dict.fromkeys(partitions, place.number)
    found = await places(source, metadata, offsets)
    return {replica: found[replica.source] for replica in replicas}


def _changes(
    replicas: Iterable[Replica], positions: Mapping[Partition, Position], starts: Places, choice: Choice
) -> list[Change]:
    """The chosen changes: of stopped partitions, of the named one, of all of a copy that is taken over."""
    changes = []
    for replica in replicas:
        held = positions.get(replica.source) or Position(replica.source_id, replica.destination_id, *NO_PLACE)
        if not (held.stopped or choice.partition is not None or (choice.take_over and replica in starts)):
            continue
        if replica in starts:
            changes.append(moved(replica, positions.get(replica.source), starts[replica]))
        elif held.next_offset == UNKNOWN or UNACCOUNTED in held.stopped:
            raise SettingsError([f"{replica.name}: {held.stopped}: --from is needed"])
        else:
            lost = lost_end(held)
            after = held.go_on() if lost is None else replace(held.go_on(), copy_end=None)
            changes.append(Change(replica, held.next_offset, after, lost_end=lost))
    return changes


async def with_ends(destination: KafkaCluster, changes: Sequence[Change]) -> list[Change]:
    """The same, with the current ends of copies whose end was unknown: later losses are noticed (J).

    A copy may have lost more since it was stopped for a loss: its map ends where its records end now.
    """
    unknown = {change.replica.copy: change.lost_end for change in changes if change.after.copy_end is None}
    metadata = await destination.metadata(sorted({topic for topic, _ in unknown}))
    ends = await list_offsets(destination, metadata, unknown, Bound.END)
    lost = await copy_losses(destination, metadata, {copy: end for copy, end in unknown.items() if end is not None})
    found = {copy: as_found(end, metadata, copy) for copy, end in ends.items()}
    return [_with_end(change, found.get(change.replica.copy), lost.get(change.replica.copy)) for change in changes]


def _with_end(change: Change, found: CopyEnd | None, loss: Loss | None) -> Change:
    """A change with the end of its copy, and with a map up to the offset from which on that copy has lost records."""
    after = change.after if found is None else replace(change.after, copy_end=found)
    if loss is None:
        return replace(change, after=after)
    if not loss.is_known or after.tail is None or after.tail.copy_to > loss.end:
        after = replace(after, tail=OffsetTail.begin(after.next_offset, loss.end))
    return replace(change, after=after, cut=not loss.is_known)


async def _commit(lane: Lane, changes: Sequence[Change], choice: Choice) -> None:
    gaps, cut = [], [change.replica for change in changes if change.cut]
    if cut and not lane.can_cut_maps:
        raise BrokerBusy("the topic of the maps of offsets cannot be written now", "LEADER_NOT_AVAILABLE")
    for change in changes:
        held = lane.checkpoint.positions.get(change.replica.source)
        if choice.start != RETRY:
            gaps += [found] if (found := gap(change, held, now_ms())) else []
        elif held is not None and held.next_offset != UNKNOWN and LOST in held.stopped:
            gaps.append(_loss(change.replica, held))
    await lane.commit([], {change.replica: change.after for change in changes}, gaps, cut=cut)


def _loss(replica: Replica, held: Position) -> Gap:
    """The gap of a copy that has lost records of unknown source offsets."""
    return Gap(replica.source, held.source_id, held.next_offset, held.next_offset, held.stopped, now_ms())
