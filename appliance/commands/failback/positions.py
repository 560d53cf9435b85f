"""The end of a failback: the positions of the link move past the records copied back, with their maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from appliance.commands.failback.diverged import kept
from appliance.commands.failback.model.failback_plan import Refusal, given_back, returned
from appliance.commands.failback.reverse_link import LOST_AGAIN, ReverseLink
from appliance.commands.run.link_lanes import Moves
from appliance.engine.write.copies import as_found
from appliance.errors import LinkRefused
from appliance.kafka.client.fetch import FetchLimits, fetch_partition
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets, undecided
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records import batch
from appliance.kafka.records.committed import committed
from appliance.link.client.log_ends import copy_losses
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.client.retry import retry_while_busy
from appliance.link.client.source_places import places
from appliance.link.model.checkpoint import Gap
from appliance.link.model.offset_map import Segment, is_copied
from appliance.link.model.position import NO_PLACE, Position, SourcePlace
from appliance.link.model.replicas import Replica, lanes_of
from appliance.listing import some

_LIMITS = FetchLimits(1024 * 1024, wait=0.5)
_NAMED = 10
_BY_ANYBODY = ", of which nobody knows who wrote them,"


@dataclass(frozen=True, slots=True)
class CopyEnds:
    """The ends and the stable ends of copies, by metadata."""

    metadata: Metadata
    ends: Mapping[Partition, int]
    stable: Mapping[Partition, int]

    @classmethod
    async def of(cls, cluster: Cluster, replicas: Sequence[Replica]) -> "CopyEnds":
        """The current ends of these partitions' copies."""
        metadata = await cluster.metadata(sorted({replica.destination_topic for replica in replicas}))
        copies = [replica.copy for replica in replicas]
        ends = await list_offsets(cluster, metadata, copies, Bound.END)
        return cls(metadata, ends, await list_offsets(cluster, metadata, copies, Bound.STABLE_END))

    def name(self, replica: Replica) -> str:
        """A copy, for people, and the open transaction in it, which its producer may have left for ever."""
        name, stable = str(replica.copy), self.stable[replica.copy]
        open_since = f" (a transaction is open from offset {stable} on: see `kafka-transactions.sh find-hanging`)"
        return name if stable == self.ends[replica.copy] else name + open_since

    def has_more(self, replica: Replica, copied_back: Position | None) -> bool:
        """True when a copy holds records not copied back yet, or an open transaction."""
        ends = {self.ends[replica.copy], self.stable[replica.copy]}
        return copied_back is None or ends != {copied_back.next_offset}


@dataclass(frozen=True, slots=True)
class Return:
    """A partition that is copied back, with the gaps that the link's position skips, and its map in the link.

    ``written_there`` are the offsets of foreign records at its source among those copied back, the first one and past
    the last one, as far as is known; ``deleted`` are offsets of the copy likewise; None where there are none. ``kept``
    counts the uncopied records that were kept in topic ``kept_in``; None where none should be.
    """

    reverse: Position | None
    begun: Gap
    gaps: tuple[Gap, ...]
    segments: Sequence[Segment] = ()
    written_there: tuple[int, int] | None = None
    deleted: tuple[int, int] | None = None
    kept: int | None = None
    kept_in: str = ""

    @property
    def records(self) -> int:
        """Records that were copied back."""
        return self.reverse.records if self.reverse else 0


async def returns(link: ReverseLink, replicas: Sequence[Replica]) -> dict[Replica, Return]:
    """The partitions once the link in reverse is fenced; LinkRefused if others wrote among what was copied back."""
    outcomes, foreign, maps = {}, [], await link.maps(replicas)
    for replica in replicas:
        begun = link.beginning(replica)
        assert begun is not None
        gaps = [replace(begun, partition=replica.source, cause="it was never copied before a failback")]
        written = await _written_there(link, replica, begun, maps)
        for ours, (first, following) in written.items():
            foreign.append(f"{replica.name} offsets {first} to {following - 1}{_BY_ANYBODY if ours is None else ''}")
            cause = f"a producer {'may have written' if ours is None else 'wrote'} between what was copied back"
            gaps.append(Gap(replica.source, replica.source_id, first, following, cause, begun.found))
        real = tuple(gap for gap in gaps if gap.first < gap.next)
        spans = written.values()
        there = (min(first for first, _ in spans), max(following for _, following in spans)) if spans else None
        others = link.deleted(replica), kept(link, replica), link.operation.naming.diverged(replica.source_topic)
        segments = given_back(maps.segments(replica.copy), begun.next)
        outcomes[replica] = Return(link.position(replica), begun, real, segments, there, *others)
    if foreign and not link.operation.choice.allow_loss:
        raise LinkRefused(
            f"a producer wrote to the source among what was copied back: {some(foreign, _NAMED)}: these "
            "records would not be copied: stop it, and give --allow-loss to leave them in the source alone"
        )
    return outcomes


async def _written_there(
    link: ReverseLink, replica: Replica, begun: Gap, maps: OffsetMaps
) -> dict[bool | None, tuple[int, int]]:
    """The records at a source among those copied back that are not known to be these, as first and next offset.

    Under False those of others, by the map of what was copied back. Under None those of which it says nothing, and that
    bear none of the newest producer ids: the source forgets an idle one, and the next one is another. Waits for an open
    transaction there.
    """
    position, source = link.position(replica), link.operation.source
    segments, ids = maps.segments(replica.copy), maps.producer_ids
    assert position is not None
    assert position.copy_end is not None
    metadata, end = await source.metadata([replica.source_topic]), position.copy_end.offset
    start = (await list_offsets(source, metadata, [replica.source], Bound.START))[replica.source]
    spans: dict[bool | None, tuple[int, int]] = {}

    async def read(at: int) -> tuple[list[batch.Batch], int]:
        fetched = await fetch_partition(source, metadata, replica.source, at, "failback", _LIMITS)
        batches = list(fetched.batches())
        if not batches and fetched.stable_end <= at:
            raise undecided(replica.source, end)
        return list(committed(batches, fetched.aborted)), batches[-1].header.last_offset + 1 if batches else end

    at = max(begun.next, start)
    while at < end:
        some, following_at = await retry_while_busy(lambda at=at: read(at))  # type: ignore[misc]
        for each in some:
            first, last = each.header.base_offset, each.header.last_offset
            ours = is_copied(segments, first, last)
            ours = (each.header.producer_id in ids or None) if ours is None else ours
            if at <= first < end and not ours:
                spans[ours] = spans.get(ours, (first, last))[0], last + 1
        at = following_at
    return spans


async def move(link: ReverseLink, outcomes: Mapping[Replica, Return]) -> None:
    """Move the link's positions past the records copied back, in every lane; the states still forbid copying."""
    forward = link.operation.lanes
    ends = await CopyEnds.of(link.operation.destination, list(outcomes))
    places_there = await _ends(link, outcomes)
    for index, owned in lanes_of(outcomes, forward.layout).items():

        def moves(positions: Mapping[Partition, Position], owned: Sequence[Replica] = owned) -> Moves:
            moved: dict[Replica, Position] = {}
            for replica in owned:
                copy_end, stable = as_found(ends.ends[replica.copy], ends.metadata, replica.copy), ends.stable
                forward_position, reverse = positions.get(replica.source), outcomes[replica].reverse
                epoch = places_there.get(replica.source, NO_PLACE).leader_epoch
                position = returned(replica, forward_position, reverse, epoch, copy_end, stable[replica.copy])
                if isinstance(position, Refusal):
                    raise LinkRefused(f"cannot be failed back: {position}")
                moved[replica] = position
            gaps = [gap for replica in owned for gap in outcomes[replica].gaps]
            segments = [(replica.source, each) for replica in owned for each in outcomes[replica].segments]
            return Moves(moved, gaps, segments)

        await forward.move(index, moves)


async def _ends(link: ReverseLink, outcomes: Mapping[Replica, Return]) -> dict[Partition, SourcePlace]:
    """The ends of what was copied back; a source that has lost some of that is refused."""
    source = link.operation.source
    copy_ends = {r.source: end for r, each in outcomes.items() if each.reverse and (end := each.reverse.copy_end)}
    metadata = await source.metadata(sorted({topic for topic, _ in copy_ends}))
    for partition in await copy_losses(source, metadata, copy_ends):
        raise LinkRefused(f"{partition}: {LOST_AGAIN}")
    return await places(source, metadata, {key: end.offset for key, end in copy_ends.items()})
