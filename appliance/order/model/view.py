"""The order as the committed facts of all clusters show it, read once. An unknown value is None, never 0."""

import enum
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import NOWHERE, Partition, is_another
from appliance.link.model.checkpoint import Gap
from appliance.link.model.layout import Layout
from appliance.link.model.order import Epoch, HiddenLog, Members, OrderRecord, Origin, Promise
from appliance.link.model.topic_configs import BEATS_KEPT_MS
from appliance.logs.model.span import Span
from appliance.order.model.beats import Beat
from appliance.order.model.elections import NOT_LISTED, enough
from appliance.program import PROGRAM

_SILENT = 10
"""Seconds without a beat after which a process is silent; the clocks of two VMs may differ by some of them."""

_MUTE = "its beats cannot be read"


class OrderState(enum.StrEnum):
    """The state of the order in a word; the first one that holds of any part of it, in this order."""

    NEVER_RUN = "never run"
    STOPPED = "stopped"
    NO_HOME = "no home"
    SILENT = "silent"
    UNKNOWN = "unknown"
    ALONE = "alone"
    ORDERING = "ordering"
    ORDERED = "ordered"

    @property
    def well(self) -> bool:
        """True when no operator is needed."""
        return self in (OrderState.ORDERING, OrderState.ORDERED)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts of one cluster: the promises of its lanes, its part in the order of each partition, and its topics T.

    ``spans`` are those of its logs, of T and of the order; a log without one could not be asked. ``gaps`` are the
    entries of its gap ledger: what it passed over as home. ``ids`` are those of the topics T. ``beats`` are the newest
    ones of its process, each with its time; None if they cannot be read.
    """

    promises: Sequence[Promise | None]
    orders: Mapping[Partition, OrderRecord]
    topics: Mapping[str, int]
    spans: Mapping[Partition, Span]
    gaps: Sequence[Gap] = ()
    ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    beats: Sequence[tuple[int, Beat]] | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster: the newest promise of its lanes and the size of its gap ledger, or why nothing is known of it now.

    After ``heard`` no beat says that its process is at work; it is None if its beats cannot be read.
    """

    id: str
    unknown: str | None
    promised: Epoch | None
    gaps: int | None
    heard: int | None


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane: its newest epoch, promised by ``promised``; ``since`` is the time of its home's own promise.

    ``before`` is the newest older epoch that a cluster which was read has accepted, or was home of.
    """

    lane: int
    epoch: Epoch | None
    since: int | None
    members: Members
    promised: Members
    lost: Members
    before: Epoch | None


@dataclass(frozen=True, slots=True)
class PartView:
    """A cluster's part in the order of a partition: ``rank`` records of its T-global, which ``lacks`` others.

    A home has taken ``unshown`` records that its T-global does not show yet. ``alone`` is the epoch in which it began
    to show what no other cluster has.
    """

    cluster: str
    accepted: Epoch
    rank: int
    lacks: int | None
    unshown: int | None
    alone: Epoch | None
    stopped: str | None


@dataclass(frozen=True, slots=True)
class OriginView:
    """A partition of T in one cluster: the next offset to take, and the number of offsets that wait from there on.

    The home takes nothing of one that has ``stopped``, for this reason.
    """

    cluster: str
    partition: int
    next_offset: int | None
    end_offset: int | None
    backlog: int | None
    stopped: str | None


@dataclass(frozen=True, slots=True)
class PartitionView:
    """The order of a partition of T: ``open`` is None if its home is unknown; ``length`` counts the home's records."""

    topic: str
    partition: int
    lane: int
    open: bool | None
    length: int | None
    parts: tuple[PartView, ...]
    origins: tuple[OriginView, ...]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that needs an operator, and the commands that end it."""

    subject: str
    reason: str

    @property
    def remedies(self) -> tuple[str, ...]:
        """The commands of an order that the reason names; what a process logs is no remedy."""
        return tuple(f"{PROGRAM} {words}" for words in re.findall(r"`appliance (order [^`]+)`", self.reason))


@dataclass(frozen=True, slots=True)
class OrderView:
    """The whole order at a time in milliseconds."""

    at: int
    clusters: tuple[ClusterView, ...]
    lanes: tuple[LaneView, ...]
    partitions: tuple[PartitionView, ...]

    @property
    def unknown(self) -> dict[str, str]:
        """The clusters of which nothing is known now, and why: members that are not listed, too."""
        members, read = {name for each in self.lanes for name in each.members}, {each.id for each in self.clusters}
        mute = {each.id: _MUTE for each in self.clusters if each.heard is None and each.promised}
        unknown = mute | {each.id: each.unknown for each in self.clusters if each.unknown}
        return unknown | dict.fromkeys(sorted(members - read), NOT_LISTED)

    @property
    def state(self) -> OrderState:
        """The state in a word."""
        parts = [part for each in self.partitions for part in each.parts]
        unknown = bool(self.unknown) or any(each.open is None for each in self.partitions)
        holds = {
            OrderState.NEVER_RUN: not unknown and not any(each.epoch for each in self.lanes),
            OrderState.STOPPED: any(part.stopped for part in parts) or any(self._stopped_origins()),
            OrderState.NO_HOME: any(each.open is False for each in self.partitions),
            OrderState.SILENT: bool(self.silent),
            OrderState.UNKNOWN: unknown,
            OrderState.ALONE: any(part.alone for part in parts),
            OrderState.ORDERING: any(part.lacks != 0 for part in parts)
            or any(origin.backlog != 0 for each in self.partitions for origin in each.origins),
        }
        return next((state for state, is_so in holds.items() if is_so), OrderState.ORDERED)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that needs an operator."""
        return tuple(self._problems())

    @property
    def silent(self) -> dict[str, int]:
        """The members whose process has not beaten for long, and for how many seconds."""
        members = {name for each in self.lanes for name in each.members}
        heard = {each.id: each.heard for each in self.clusters if each.heard is not None and each.id in members}
        seconds = {name: (self.at - at) // 1000 for name, at in heard.items()}
        return {name: number for name, number in seconds.items() if number >= _SILENT}

    def _of_home(self, cluster: str) -> str:
        """What follows if a cluster that is down is home, and what to do if it is lost."""
        down = {*self.unknown, *self.silent}
        for lane in self.lanes:
            if lane.epoch is None or lane.epoch.home != cluster:
                continue
            up = [each for each in lane.members if each not in down]
            if enough(up, lane.members):
                return "; it is home: another cluster becomes home by itself"
            if up:
                lost = ",".join(sorted({*lane.members} - {*up}))
                return f"; it is home: `appliance order move --to {up[0]} --lost {lost}` if {lost} is lost"
        return ""

    def _stopped_origins(self) -> Iterator[Problem]:
        for each in self.partitions:
            for origin in each.origins:
                if origin.stopped:
                    yield Problem(f"{each}, taken of {origin.cluster}", origin.stopped)

    def _problems(self) -> Iterator[Problem]:
        if self.state is OrderState.NEVER_RUN:
            yield Problem("order", "no cluster has promised anything yet: start its process beside each of them")
        for cluster, reason in self.unknown.items():
            yield Problem(cluster, f"unknown now: {reason}{self._of_home(cluster)}")
        for cluster, seconds in self.silent.items():
            yield Problem(cluster, f"silent for {seconds} s: start its process{self._of_home(cluster)}")
        for each in self.partitions:
            lane = self.lanes[each.lane]
            if each.open is False and lane.epoch:
                promised = ", ".join(lane.promised) or "nobody"
                yield Problem(str(each), f"no home: epoch {lane.epoch}, promised by {promised}, is not open")
            for part in each.parts:
                if part.stopped:
                    yield Problem(f"{each} of {part.cluster}", part.stopped)
                if part.alone:
                    yield Problem(f"{each} of {part.cluster}", "alone: it shows what no other cluster has")
        yield from self._stopped_origins()


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
    return ClusterView(name, None, promised, len(facts.gaps), _heard(facts.beats, now))


def _lane(lane: int, read: Mapping[str, ClusterFacts]) -> LaneView:
    given = {name: each.promises[lane] for name, each in read.items() if lane < len(each.promises)}
    promises = {name: promise for name, promise in given.items() if promise is not None}
    newest = max(promises.values(), key=lambda each: each.epoch, default=None)
    if newest is None:
        return LaneView(lane, None, None, (), (), (), None)
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


def made_anew(origin: Origin, topic: str) -> str:
    """The reason that nothing is taken of an origin whose topic was made anew."""
    return (
        f"{origin.of(topic)} was deleted and made anew: `appliance order resume --origin {origin.cluster} "
        f"--topic-name {topic} --partition {origin.number} --from earliest`"
    )
