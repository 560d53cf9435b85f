"""The facts of both logs that decide how positions change: places in the source, losses, ends, and other links."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from appliance.clock import now_ms
from appliance.commands.model.position_change import Change, Kind, Place
from appliance.engine.write.copies import as_found
from appliance.errors import LinkRefused, SettingsError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.offsets import Bound, epoch_ends, list_offsets, offsets_at
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.log_ends import EpochEnds, copy_logs, copy_losses
from appliance.link.client.source_places import places
from appliance.link.handle import Copies
from appliance.link.model.agreement import lost_records
from appliance.link.model.claims import belongs_to_another
from appliance.link.model.naming import Naming
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import UNACCOUNTED, CopyEnd, Loss, Position, SourcePlace
from appliance.link.model.replicas import Replica

_BOUNDS = {Kind.EARLIEST: Bound.START, Kind.LATEST: Bound.STABLE_END}

Places = dict[Replica, SourcePlace]
"""The place in the source at which each partition goes on."""


def require_own(copies: Copies, replicas: Iterable[Replica], naming: Naming) -> None:
    """Refuse partitions whose copies belong to other links."""
    for replica in replicas:
        if claim := copies.others.get(replica.destination_topic):
            raise LinkRefused(belongs_to_another(replica.destination_topic, claim, naming))


async def source_places(source: KafkaCluster, replicas: Collection[Replica], place: Place, option: str) -> Places:
    """The place at which each partition continues; past its last record if none is as new as the time.

    That is the log's start where the offset is older: retention may have passed one that was printed.
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
    positions_now = dict(positions)
    for key, log in (await copy_logs(EpochEnds(destination), metadata, naming, going)).items():
        position, end = going[key], going[key].copy_end
        if end and not log.doubt(end) and log.topic_id == position.destination_id and (loss := log.loss(end)):
            reason = "; ".join(filter(None, (position.stopped, lost_records(log.partition, end, loss))))
            positions_now[key] = position.stop_shortened(reason, now_ms(), loss)
    return positions_now


async def with_divergence(source: KafkaCluster, changes: Sequence[Change]) -> list[Change]:
    """The same, with the offsets from which on a truncated source holds other records than were copied."""
    before = {change.replica.source: change.position for change in changes if change.is_known}
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
    losses = await copy_losses(destination, metadata, {copy: end for copy, end in unknown.items() if end is not None})
    new_ends = {copy: as_found(end, metadata, copy) for copy, end in ends.items()}
    return [_with_end(change, new_ends.get(change.replica.copy), losses.get(change.replica.copy)) for change in changes]


def _with_end(change: Change, end: CopyEnd | None, loss: Loss | None) -> Change:
    """A change with the end of its copy, and with a map up to the offset from which on that copy has lost records."""
    after = change.after if end is None else replace(change.after, copy_end=end)
    if loss is None:
        return replace(change, after=after)
    if not loss.is_known or after.tail is None or after.tail.copy_to > loss.end:
        after = replace(after, tail=OffsetTail.begin(after.next_offset, loss.end))
    return replace(change, after=after, cut=not loss.is_known)
