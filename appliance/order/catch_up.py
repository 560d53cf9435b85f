"""Catching up from another cluster's T-global: what is visible in any of them is final.

The runs come from that cluster's maps of offsets. Its promise, and the end of its T-global, come from one prefix of its
records, and no more is copied than that: what lies beyond may belong to an epoch that was not promised here.
"""

from collections.abc import Iterator, Mapping, Sequence

from appliance.errors import ApplianceError, PartitionStopped, Unreachable, raise_first
from appliance.kafka.client.fetch import FetchLimits, fetch_partition
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import NOWHERE, Partition, is_another
from appliance.kafka.records.committed import committed
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.outgoing import Outgoing, outgoing
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.naming import Naming
from appliance.link.model.offset_map import Segment, run_at
from appliance.link.model.order import UNKNOWN_DIGEST, OrderRecord, Origin, Place, Run, Vector, merged
from appliance.link.model.position import Position
from appliance.order.learning import Learned
from appliance.order.model.changes import Shown, places_of
from appliance.order.model.rebuilding import Beginning, beginning
from appliance.order.partition import diverged
from appliance.order.peers import Peer


async def catch_up(
    key: Partition,
    record: OrderRecord,
    positions: Mapping[Partition, Position],
    peer: Peer,
    naming: Naming,
    limit: int,
    size: int,
    *,
    single: bool,
) -> Learned | Beginning | None:
    """About ``size`` bytes of a peer's T-global past what is shown here; None if it has no more.

    ``positions`` are those of this cluster. Batches get no larger than ``limit``. If the peer lacks what comes next,
    the first that it has.

    Raises:
        PartitionStopped: the two have other records before that.
        Unreachable: the peer's maps do not say where it goes on.
    """
    theirs, promise = peer.record(key), peer.checkpoint.promise
    places = places_of(key, peer.checkpoint.positions, single=single)
    if promise is None or theirs.end is None or theirs.rank <= record.rank:
        return None
    shown_log = Partition(naming.destination(key.topic), key.number)
    metadata = await peer.cluster.metadata([shown_log.topic])
    first = (await list_offsets(peer.cluster, metadata, [shown_log], Bound.START))[shown_log]
    maps = OffsetMaps(peer.cluster, naming)  # read after that: they know of all that was deleted by then
    raise_first((await maps.refresh([origin.of(key.topic) for origin in places])).values())
    raise_first(filter(None, (maps.failure(origin.of(key.topic)) for origin in places)))
    segments = {origin: maps.segments(origin.of(key.topic)) for origin in places}
    try:
        starts = [_start(maps, origin, key.topic, positions, segments[origin]) for origin in places]
        start = min((offset for offset in starts if offset is not None), default=None)
        if start is None:
            return None
        if start < first:
            raise Unreachable(f"{maps.name}: {shown_log} begins at offset {first}, and {start} is needed")
    except Unreachable:
        begins = beginning(theirs, first, segments, places)
        shown_since = first > theirs.end.offset and any(
            (newest := maps.position(origin.of(key.topic))) is not None and newest.next_offset > place.next_offset
            for origin, place in places.items()
        )
        if begins.rank <= record.rank or shown_since:  # the rest of the peer's facts is on its way
            raise
        return begins
    limits = FetchLimits(size, wait=0)
    fetched = await fetch_partition(peer.cluster, metadata, shown_log, start, "order-catch-up", limits)
    whole = committed(list(fetched.batches(convert)), fetched.aborted)
    batches = tuple(outgoing(whole, start, limit, theirs.end.offset))
    runs = merged(run for batch in batches for run in _runs(batch, segments, shown_log))
    if not runs:
        return None
    rank = record.rank + sum(run.length for run in runs)
    is_whole = rank == theirs.rank and record.digest.after(runs) in (theirs.digest, UNKNOWN_DIGEST)
    anew = any(_is_anew(positions.get(origin.of(key.topic)), place) for origin, place in places.items())
    if anew and not is_whole:
        raise Unreachable(f"{maps.name}: nobody knows all records of {key} before an origin was made anew")
    if rank > theirs.rank or (rank == theirs.rank and not is_whole):
        raise PartitionStopped(diverged(key, record.rank, theirs.rank))
    vector = _vector(runs, places, at_the_end=rank == theirs.rank)
    return Learned(record.rank, promise.epoch, (Shown(batches, runs, vector),), theirs.digest if is_whole else None)


def _is_anew(own: Position | None, theirs: Place) -> bool:
    """True if the peer has gone on with another topic of an origin."""
    return own is not None and is_another(own.source_id, theirs.topic_id)


def _start(
    maps: OffsetMaps,
    origin: Origin,
    topic: str,
    positions: Mapping[Partition, Position],
    segments: Sequence[Segment],
) -> int | None:
    """The offset of the peer's T-global of the first record of an origin that is not shown here; None: it has none."""
    partition = origin.of(topic)
    own, theirs = positions.get(partition), maps.position(partition)
    next_offset = own.next_offset if own else 0
    if theirs is not None and own is not None and is_another(own.source_id, theirs.source_id):
        own, next_offset = None, 0  # the digest at the end tells whether all of the former topic is shown here
    if theirs is None or next_offset >= theirs.next_offset:
        return None
    answer = maps.translate(partition, next_offset, own.source_id if own else NOWHERE)
    if answer.offset is None:
        raise Unreachable(f"{maps.name}: nobody knows where {partition} goes on there: {answer.reason}")
    run = _run_at(origin, segments, answer.offset)
    return answer.offset if run is not None and run.first >= next_offset else None


def _runs(batch: Outgoing, segments: Mapping[Origin, Sequence[Segment]], log: Partition) -> Iterator[Run]:
    """The runs of a batch, whose own offsets are those of the peer's T-global."""
    for first, length in batch.runs or ((batch.first_offset, batch.records),):
        at, end = first, first + length
        while at < end:
            run = next(filter(None, (_run_at(origin, own, at) for origin, own in segments.items())), None)
            if run is None:
                raise ApplianceError(f"nobody knows where the record at offset {at} of {log} comes from")
            run = run._replace(length=min(run.length, end - at))
            yield run
            at += run.length


def _run_at(origin: Origin, segments: Sequence[Segment], offset: int) -> Run | None:
    """The run of this origin that has the record at an offset of the peer's T-global."""
    found = run_at(segments, offset)
    return Run(origin, *found) if found is not None else None


def _vector(runs: Sequence[Run], places: Mapping[Origin, Place], *, at_the_end: bool) -> Vector:
    """The places after these runs; at the end of the peer's T-global those that it has."""
    ends = {run.origin: run.first + run.length for run in runs}
    return {
        origin: places[origin] if at_the_end else Place(places[origin].topic_id, end, -1)
        for origin, end in ends.items()
    }
