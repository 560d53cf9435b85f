"""The facts of each cluster of an order, and the view that they give. Pure."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import NOWHERE, Partition, is_another
from appliance.link.model.checkpoint import Gap
from appliance.link.model.layout import Layout
from appliance.link.model.order import Epoch, HiddenLog, OrderRecord, Origin, Promise
from appliance.link.model.standby import STANDS_BY, Members
from appliance.link.model.topic_configs import BEATS_KEPT_MS
from appliance.logs.model.span import Span
from appliance.order.model.beats import Beat
from appliance.order.model.view import (
    ClusterView,
    LaneView,
    OrderView,
    OriginView,
    PartitionView,
    PartView,
    made_anew,
)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts of one cluster: the promises of its lanes, its part in the order of each partition, and its topics T.

    ``spans`` are those of its logs, of T and of the order; a log without one could not be asked. ``gaps`` are the
    entries of its gap ledger: what it passed over as home. ``ids`` are those of the topics T. ``beats`` are the newest
    ones of its process, each with its time; None if they cannot be read. ``processes`` are those beside it.
    """

    promises: Sequence[Promise | None]
    orders: Mapping[Partition, OrderRecord]
    topics: Mapping[str, int]
    spans: Mapping[Partition, Span]
    gaps: Sequence[Gap] = ()
    ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    beats: Sequence[tuple[int, Beat]] | None = None
    processes: Members | None = None


def compose(facts: Mapping[str, ClusterFacts | str], now: int, *, single: bool) -> OrderView:
    """The view of what was read; a text is the reason that nothing is known of a cluster."""
    read = {name: each for name, each in facts.items() if isinstance(each, ClusterFacts)}
    lanes = tuple(_lane(lane, read) for lane in range(max((len(each.promises) for each in read.values()), default=0)))
    clusters = (
        ClusterView(name, each, None, None, None) if isinstance(each, str) else _cluster(name, each, now)
        for name, each in facts.items()
    )
    keys = {key for each in read.values() for key in each.orders}
    for each in read.values():
        for topic, size in each.topics.items():
            keys |= {Partition(topic, number) for number in range(1 if single else size)}
    layout = Layout(len(lanes))
    partitions = (_partition(key, lanes[layout.lane_of(*key)], read, single=single) for key in sorted(keys) if lanes)
    return OrderView(now, tuple(clusters), lanes, tuple(partitions))


def _cluster(name: str, facts: ClusterFacts, now: int) -> ClusterView:
    promised = max((each.epoch for each in facts.promises if each), default=None)
    there = facts.processes or Members()
    standbys = tuple(each.host for each in there.members if there.state(each) == STANDS_BY)
    host = there.active.host if there.active else None
    return ClusterView(name, None, promised, len(facts.gaps), _heard(facts.beats, now), host, standbys)


def _lane(lane: int, read: Mapping[str, ClusterFacts]) -> LaneView:
    given = {name: each.promises[lane] for name, each in read.items() if lane < len(each.promises)}
    promises = {name: promise for name, promise in given.items() if promise is not None}
    newest = max(promises.values(), key=lambda each: each.epoch, default=None)
    if newest is None:
        return LaneView(lane, None, None, (), (), (), None, None)
    own, lanes = promises.get(newest.epoch.home), Layout(max(len(each.promises) for each in read.values()))
    orders = [record for each in read.values() for key, record in each.orders.items() if lanes.lane_of(*key) == lane]
    epochs = {record.accepted for record in orders} | {record.hidden.epoch for record in orders if record.hidden}
    return LaneView(
        lane,
        newest.epoch,
        own.since if own and own.epoch == newest.epoch else None,
        newest.members,
        tuple(name for name, each in promises.items() if each.epoch == newest.epoch),
        newest.lost,
        newest.cause or None,
        max((each for each in epochs if each.number and each < newest.epoch), default=None),
    )


def _heard(beats: Sequence[tuple[int, Beat]] | None, now: int) -> int | None:
    """The time of the newest beat of a process whose lanes are all at work, else one before which one may have been."""
    if beats is None:
        return None
    times = [at for at, beat in beats if all(each.epoch.number for each in beat.lanes)]
    return max(times, default=beats[0][0] if beats else now - BEATS_KEPT_MS)


def _partition(key: Partition, lane: LaneView, read: Mapping[str, ClusterFacts], *, single: bool) -> PartitionView:
    home = read.get(lane.epoch.home) if lane.epoch else None
    record = home.orders.get(key, OrderRecord()) if home else None
    hidden = record.hidden_tail(lane.epoch.home) if record and lane.epoch and record.accepted == lane.epoch else None
    is_open = hidden is not None if record or lane.epoch is None else None
    parts = (
        _part(name, each.orders.get(key, OrderRecord()), hidden, lane.epoch)
        for name, each in read.items()
        if name in lane.members or key in each.orders
    )
    length = hidden.rank if hidden else None
    origins = tuple(_origins(key, hidden, read, single=single))
    return PartitionView(*key, lane.lane, is_open, length, tuple(parts), origins)


def _part(name: str, record: OrderRecord, hidden: HiddenLog | None, epoch: Epoch | None) -> PartView:
    is_home = hidden is not None and epoch is not None and epoch.home == name
    lacks = max(0, hidden.rank - record.rank) if hidden else None
    unshown, alone = lacks if is_home else None, record.alone if record.is_alone else None
    return PartView(name, record.accepted, record.rank, lacks, unshown, alone, record.stopped or None)


def _origins(
    key: Partition, hidden: HiddenLog | None, read: Mapping[str, ClusterFacts], *, single: bool
) -> Iterator[OriginView]:
    """The origins that were seen, or that the home knows; their ends were read after the home's places."""
    seen = {
        Origin(name, number)
        for name, each in read.items()
        for number in range(each.topics.get(key.topic, 0))
        if single or number == key.number
    }
    for origin in sorted(seen.union(hidden.vector if hidden else ())):
        cluster = read.get(origin.cluster)
        span = cluster.spans.get(Partition(key.topic, origin.number)) if cluster else None
        place = hidden.vector.get(origin) if hidden else None
        start, end = (None, None) if span is None else (span.start, span.end)
        there = cluster.ids.get(key.topic, NOWHERE) if cluster else NOWHERE
        is_anew = place is not None and is_another(place.topic_id, there)
        following = place.next_offset if place and not is_anew else start if hidden else None
        backlog = None if following is None or end is None else max(0, end - following)
        yield OriginView(*origin, following, end, backlog, made_anew(origin, key.topic) if is_anew else None)
