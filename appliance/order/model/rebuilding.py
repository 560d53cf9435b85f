"""Rebuilding a T-global: what it shares with another one, and what a cluster that begins again answers for. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import NamedTuple

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.naming import Naming
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_runs import unpack_groups
from appliance.link.model.order import UNKNOWN_DIGEST, Digest, OrderRecord, Origin, Place, Run, Vector
from appliance.order.model.cluster_facts import ClusterFacts
from appliance.order.model.elections import Facts
from appliance.order.model.view import OrderView

REBUILD = "`appliance order rebuild`"
"""What ends the stop of a T-global that is not what its lane has written."""

AFTER_A_GAP = "`appliance order resume --gap`"
"""What ends the stop of one that lacks records which nobody has any more."""

REBUILDING = "is being rebuilt: it has no vote until it has what it had"
"""The reason for which a partition is stopped that was rebuilt, and copies."""

Maps = Mapping[Origin, Sequence[Segment]]
"""The map of each origin of a partition of T to one T-global."""


class Placed(NamedTuple):
    """A run, and the offset of its first record in a T-global."""

    offset: int
    run: Run


class Shared(NamedTuple):
    """The first ``rank`` records are the same; ``offset`` is that of the first other one here, None if there is none.

    ``own`` and ``theirs`` are the numbers of records that the maps have.
    """

    rank: int
    offset: int | None
    own: int
    theirs: int


@dataclass(frozen=True, slots=True)
class Aside:
    """A partition of T-global from offset ``start`` to ``end``, which nobody else has, in whole or in part.

    Its ``records`` alone it has shown; it is None if no map of offsets says so, and all of T-global is set aside.
    """

    partition: int
    start: int
    end: int
    records: int | None


def shared(own: Maps, theirs: Maps) -> Shared:
    """Compare two T-globals from their first records on."""
    left, right = _placed(own), _placed(theirs)
    ours, others = next(left, None), next(right, None)
    rank = 0
    while ours is not None and others is not None:
        if (ours.run.origin, ours.run.first) != (others.run.origin, others.run.first):
            break
        length = min(ours.run.length, others.run.length)
        rank += length
        ours = _after(ours, length) or next(left, None)
        others = _after(others, length) or next(right, None)
    counts = (
        rank + sum(each.run.length for each in ([first] if first else [])) + sum(each.run.length for each in rest)
        for first, rest in ((ours, left), (others, right))
    )
    return Shared(rank, ours.offset if ours else None, *counts)


class Beginning(NamedTuple):
    """The first records of a T-global that nobody has deleted: their ``rank``, the places, and the digest there."""

    rank: int
    places: Vector
    digest: Digest


def beginning(theirs: OrderRecord, start: int, maps: Maps, places: Vector) -> Beginning:
    """The first records that a T-global has, which begins at offset ``start`` by now; ``places`` are after its last."""
    end, rank, first = theirs.end.offset if theirs.end else 0, theirs.rank, dict(places)
    there = [each for each in _placed(maps) if start < each.offset + each.run.length and each.offset < end]
    for offset, run in reversed(there):
        deleted = max(start - offset, 0)
        rank -= run.length - deleted
        first[run.origin] = Place(places[run.origin].topic_id, run.first + deleted, -1)
    return Beginning(rank, first, UNKNOWN_DIGEST if there else theirs.digest)


def mapped(maps: Maps) -> int:
    """The number of records of a T-global that its maps have."""
    return sum(each.run.length for each in _placed(maps))


def _after(placed: Placed, records: int) -> Placed | None:
    offset, run = placed
    if run.length == records:
        return None
    return Placed(offset + records, run._replace(first=run.first + records, length=run.length - records))


def _placed(maps: Maps) -> Iterator[Placed]:
    return merge(*(_runs(origin, segments) for origin, segments in maps.items()))


def _runs(origin: Origin, segments: Sequence[Segment]) -> Iterator[Placed]:
    for segment in segments:
        source, copy = segment.range.source_from, segment.range.copy_from
        for group in unpack_groups(segment.range.packed):
            for _ in range(group.repeat):
                source, copy = source + group.source_gap, copy + group.copy_gap
                yield Placed(copy, Run(origin, source, group.length))
                source, copy = source + group.length, copy + group.length


def is_stopped(record: OrderRecord) -> bool:
    """True if only a rebuild lets the partition go on; of one that is being rebuilt it is done already."""
    return REBUILD in record.stopped


NOTHING_STOPPED = "nothing is stopped: `appliance order status`; with --topic a T-global is made anew nevertheless"


def _unmended(own: str, keys: Collection[Partition], view: OrderView) -> str:
    """The reason of a stop that a rebuild does not end, of these partitions, or of any if there are none."""
    for each in view.partitions:
        for part in each.parts:
            is_meant = part.cluster == own and (not keys or Partition(each.topic, each.partition) in keys)
            if is_meant and part.stopped not in (None, REBUILDING) and REBUILD not in part.stopped:
                return f"{each} of {own} is stopped, and no rebuild ends that: {part.stopped}"
    return ""


def refusal(own: str, keys: Collection[Partition], view: OrderView) -> str:
    """The reason that these partitions cannot be rebuilt as things are; empty if they can be."""
    if reason := _unmended(own, keys, view):
        return reason
    if not keys:
        return NOTHING_STOPPED
    for each in view.partitions:
        if Partition(each.topic, each.partition) not in keys:
            continue
        epoch = view.lanes[each.lane].epoch
        if epoch is None:
            return "no cluster has promised anything yet: start the processes first"
        if epoch.home == own:
            return f"{own} is home of {each}: `appliance order move --to` another cluster first"
        if epoch.home in view.unknown:
            return f"{epoch.home}, the home of {each}, does not answer: {view.unknown[epoch.home]}"
        if not each.open:
            return f"epoch {epoch} is not open yet for {each}: see `appliance order status`"
        if all(part.stopped for part in each.parts if part.cluster != own):
            return f"{each} is stopped in all other clusters, too: nobody has its records"
    return ""


def lost_beginning(keys: Collection[Partition], others: Collection[ClusterFacts], naming: Naming) -> str:
    """The reason that no other cluster could fill these T-globals from their first records on; empty if some can."""
    for key in sorted(keys):
        log = Partition(naming.destination(key.topic), key.number)
        written = [each for each in others if key in each.orders and each.orders[key].rank]
        begins = [
            log in each.spans and not each.spans[log].start and not each.orders[key].first_rank
            for each in written
            if not each.orders[key].stopped
        ]
        if written and not any(begins):
            text = f"retention has deleted the first records of {log} in all other clusters"
            return f"{text}: with --gap it begins after them"
    return ""


def begun_again(home: Facts, before: OrderRecord) -> OrderRecord:
    """The part in the order of a cluster that has nothing any more.

    It may have acknowledged whatever the home has taken: it has no vote below that in the home's epoch.
    """
    assert home.promise is not None
    epoch = home.promise.epoch
    owes = max(home.record.length(epoch.home), before.rank if before.accepted == epoch else 0, before.owes)
    return OrderRecord(accepted=epoch, owes=owes, stopped=REBUILDING)
