"""The beginning of a failback: the first offsets of the link in reverse, and the offsets where the logs diverge."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from appliance.clock import now_ms
from appliance.commands.failback.model.failback_plan import (
    GIVE_UP,
    PromotedLogs,
    Refusal,
    Seed,
    divergence_offset,
    has_moved,
    lost_begin,
    seed,
)
from appliance.commands.failback.reverse_link import BEGUN, ReverseLink, reversed_replica
from appliance.engine.write.copies import as_found
from appliance.engine.write.lane import Lane
from appliance.errors import LinkRefused, raise_first
from appliance.kafka.client.configs import write_limits
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.link.client.log_ends import EpochEnds, copy_losses
from appliance.link.client.source_places import places
from appliance.link.model.checkpoint import Gap
from appliance.link.model.copy_states import CopyState
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import LOST, UNACCOUNTED
from appliance.link.model.replicas import Replica


async def plan(link: ReverseLink, replicas: Sequence[Replica]) -> dict[Replica, Seed]:
    """Plan the beginnings of partitions that have not begun yet."""
    positions = link.operation.lanes.positions
    topics = {topic for topic, _ in positions}
    fresh = [replica for replica in replicas if _has_to_begin(link, replica)]
    refusals = [refusal for replica in replicas if (refusal := _broken(link, replica, fresh))]
    logs = await _promoted_logs(link, fresh)
    begins = await _divergence_places(link, logs)
    planned: dict[Replica, Seed] = {}
    for replica in fresh:
        position, begin = positions.get(replica.source), begins.get(replica)
        outcome = seed(replica, position, logs[replica], begin, grown=replica.source_topic in topics)
        if isinstance(outcome, Refusal):
            refusals.append(outcome)
        else:
            planned[replica] = outcome
            refusals += _lacking(link, replica, outcome)
    if refusals:
        raise LinkRefused("cannot be failed back: " + "; ".join(map(str, refusals)))
    return planned | await _anew(link, [replica for replica in replicas if replica not in fresh])


async def require_times(link: ReverseLink, topics: Collection[str]) -> None:
    """See that these topics of the source keep the times of what is copied back, or say which ones do not."""
    limits, failures = await write_limits(link.operation.source, topics)
    raise_first(failures.values())
    if changing := ", ".join(sorted(name for name, each in limits.items() if not each.keeps_times)):
        what = f"message.timestamp.type=LogAppendTime gives new times to what is copied back to {changing}"
        if not link.operation.choice.allow_loss:
            remedy = "set CreateTime there until the failback has ended, or give --allow-loss"
            raise LinkRefused(f"cannot be failed back: {what}: {remedy}")
        link.operation.tell(what)


async def _anew(link: ReverseLink, replicas: Sequence[Replica]) -> dict[Replica, Seed]:
    """The positions of partitions whose sources lost records copied back: the offsets of these in the copies."""
    positions = {r: held for r in replicas if _has_lost(link, r) and (held := link.position(r))}
    if not positions:
        return {}
    maps, logs = await link.maps(positions), await _promoted_logs(link, list(positions))
    planned = {}
    for replica, held in positions.items():
        forward, begun = link.operation.lanes.positions.get(replica.source), link.beginning(replica)
        assert begun is not None
        begin = lost_begin(maps.segments(replica.copy), held, begun, forward)
        if begin is None:
            raise LinkRefused(f"cannot be failed back: {replica.name}: {held.stopped}; nobody knows where that was")
        end = logs[replica].source_end
        position = replace(held.go_on(), next_offset=begin, copy_end=end, tail=OffsetTail.begin(begin, end.offset))
        planned[replica] = Seed(position, (begun.first, begun.next), (begin, begin))
    return planned


def _lacking(link: ReverseLink, replica: Replica, planned: Seed) -> list[Refusal]:
    """The refusals of a copy that has lost records, unless losses are allowed."""
    spans = {
        planned.deleted: "are deleted, and can never be brought back: give --allow-loss to go on after them",
        planned.lost: "were lost after they had been copied, and are at the source alone: give --allow-loss to go on",
    }
    return [
        Refusal(replica.name, f"offsets {first} to {following - 1} of its copy {what}")
        for (first, following), what in spans.items()
        if first < following and not link.operation.choice.allow_loss
    ]


def _broken(link: ReverseLink, replica: Replica, fresh: Sequence[Replica]) -> Refusal | None:
    """The reason that a started failback must not continue."""
    record, position = link.failing(replica.source_topic), link.position(replica)
    was_copied = replica.source in link.operation.lanes.positions
    if replica in fresh and record and record.details.get(BEGUN) and was_copied and link.beginning(replica) is None:
        what = f"{link.naming.positions_topic} does not say how much was copied back, and it was begun"
        return Refusal(replica.name, f"{what}: has the source lost that topic, or its end? {GIVE_UP}")
    if replica not in fresh and position and (reason := has_moved(replica, position)):
        return Refusal(replica.name, reason)
    return None


def _has_to_begin(link: ReverseLink, replica: Replica) -> bool:
    """True of a partition that has not begun, or has copied nothing yet and found a foreign writer at its source."""
    position = link.position(replica)
    unused = position is not None and not position.records and position.has_stopped_for(UNACCOUNTED)
    return link.beginning(replica) is None or unused


def _has_lost(link: ReverseLink, replica: Replica) -> bool:
    """True when the source has lost records copied back."""
    position = link.position(replica)
    return position is not None and position.has_stopped_for(LOST)


async def _promoted_logs(link: ReverseLink, replicas: Sequence[Replica]) -> dict[Replica, PromotedLogs]:
    """Both current logs of partitions."""
    source, destination = link.operation.source, link.operation.destination
    positions = link.operation.lanes.positions
    at_source = await source.metadata(sorted({replica.source_topic for replica in replicas}))
    at_destination = await destination.metadata(sorted({replica.destination_topic for replica in replicas}))
    ends = await list_offsets(source, at_source, [replica.source for replica in replicas], Bound.END)
    starts = await list_offsets(destination, at_destination, [replica.copy for replica in replicas], Bound.START)
    begins = await places(destination, at_destination, starts)
    copy_ends = {r.copy: end for r in replicas if (position := positions.get(r.source)) and (end := position.copy_end)}
    losses = await copy_losses(destination, at_destination, copy_ends)
    epochs = {r.source: position.leader_epoch for r in replicas if (position := positions.get(r.source))}
    epochs_end, failures = await EpochEnds(source).read(at_source, epochs, epochs)
    raise_first(failures.values())
    return {
        replica: PromotedLogs(
            as_found(ends[replica.source], at_source, replica.source),
            begins[replica.copy].leader_epoch,
            epochs_end.get(replica.source),
            starts[replica.copy],
            losses.get(replica.copy),
        )
        for replica in replicas
    }


async def _divergence_places(link: ReverseLink, both_logs: Mapping[Replica, PromotedLogs]) -> dict[Replica, int]:
    """The copy's offsets where the logs diverge, for partitions whose source lost copied records; as far as known."""
    positions = link.operation.lanes.positions
    divergence = {
        replica: offset
        for replica, each in both_logs.items()
        if (position := positions.get(replica.source))
        and (offset := divergence_offset(position, each)) is not None
        and offset < position.next_offset
    }
    if not divergence:
        return {}
    maps = link.operation.link.maps()
    await maps.refresh({replica.source for replica in divergence})
    begins = {r: maps.translate(r.source, offset, r.source_id).offset for r, offset in divergence.items()}
    return {replica: begin for replica, begin in begins.items() if begin is not None}


async def begin(link: ReverseLink, replicas: Sequence[Replica]) -> None:
    """Write the first position of each partition that has none in this failback, and let the lanes copy."""
    planned = await plan(link, replicas)
    back = {reversed_replica(replica): replica for replica in replicas}

    async def write(lane: Lane, owned: Sequence[Replica]) -> None:
        new = [back[each] for each in owned if back[each] in planned and _has_to_begin(link, back[each])]
        lost = [back[each] for each in owned if back[each] in planned and _has_lost(link, back[each])]
        seeds = {reversed_replica(replica): planned[replica].position for replica in (*new, *lost)}
        await lane.commit([], seeds, [gap for replica in new for gap in _gaps(link, replica, planned[replica])])
        await link.let(lane, CopyState.ACTIVE)

    await link.in_lanes(replicas, write)


def _gaps(link: ReverseLink, replica: Replica, planned: Seed) -> list[Gap]:
    now, (first, following) = now_ms(), planned.deleted
    begun = Gap(replica.copy, replica.source_id, *planned.diverged, link.failback(replica.source_topic), now)
    deleted = Gap(replica.copy, replica.destination_id, first, following, "deleted before it was brought back", now + 1)
    return [begun, deleted] if first < following else [begun]
