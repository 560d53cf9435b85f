"""The state of a link at one moment, as frozen values. Unknown values are None, never 0; times are milliseconds."""

import enum
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from appliance.groups.model.group_plan import GroupPlan
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.link.model.checkpoint import Gap, Owner
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.link_sql import SqlChange
from appliance.link.model.mirror_records import Heartbeat
from appliance.link.model.position import Trial
from appliance.link.model.problems import Fault, Problems, has_a_view, persistent
from appliance.settings.values import Side

_Number = TypeVar("_Number", int, float)


class LinkState(enum.StrEnum):
    """The state of a link; the first of these that matches.

    It fails while nothing is copied of a partition though there is something, for two minutes. It is inactive when
    operators have paused or promoted every topic: then nothing is copied, as requested.
    """

    UNKNOWN = "unknown"
    NEVER_RUN = "never run"
    STOPPED = "stopped"
    FAILING = "failing"
    NOTHING_MATCHES = "nothing matches"
    INACTIVE = "inactive"
    COPYING = "copying"
    COPIED = "copied"

    @property
    def well(self) -> bool:
        """True when no operator is needed."""
        return self in (LinkState.INACTIVE, LinkState.COPYING, LinkState.COPIED)


@dataclass(frozen=True, slots=True)
class BlockingTransaction:
    """An open transaction that holds up a partition; ``waiting`` offsets are behind it."""

    transaction: OpenTransaction
    waiting: int


STUCK_MS = 120_000
_SEEN_MS = 30_000
_SILENCE_MS = 60_000
_ENDED = "SQL in flight: Spark has ended, or made no progress, between offset {} and offset {}"
_TURN_MS, _TURN_BYTES, _LEADERS = 1_000, 2 * 1024 * 1024, 4
"""A partition's longest turn within a bound, where some leaders take turns: a second's bytes, or a large answer."""


class Reached(NamedTuple):
    """An end of a source partition, and the time at which it was first seen, in milliseconds."""

    end: int
    at: int


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One source partition.

    ``copied`` counts records and ``bytes`` their size, ever; ``rate`` is in records a second. ``lag_records`` counts
    source offsets up to the last stable one: transaction markers and what compaction took are among them.
    ``reached`` are the source's ends above the position, the lowest first; ``looked_at`` is the time of the first look
    that found the lag, ``committed_at`` that of the position by the destination's clock. ``latency_ms`` is the time
    from the newest record's timestamp to the commit of its copy, None if nothing was copied since the snapshot before.
    ``gaps`` are None when not known.
    With identical names, ``dropped`` counts the records that were not copied since a link had written them at the
    source, and ``written`` those that links say they wrote there; None if unknown, or with other names.
    ``filtered`` counts the records that SQL in flight has left out, and ``dead_letters`` those that it failed on.
    ``lost_at_source`` counts the copied offsets that the source holds no more; None if unknown. ``trial`` is what
    the SQL is given, where Spark may have ended.
    """

    topic: str
    partition: int
    lane: int | None
    next_offset: int | None
    end_offset: int | None
    copied: int | None
    bytes: int | None
    rate: float | None
    lag_records: int | None
    reached: tuple[Reached, ...]
    looked_at: int | None
    committed_at: int | None
    lag_seconds: float | None
    latency_ms: int | None
    stopped: Fault | None
    unknown: Fault | None
    held: BlockingTransaction | None
    gaps: tuple[Gap, ...] | None
    dropped: int | None = None
    written: int | None = None
    filtered: int | None = None
    dead_letters: int | None = None
    lost_at_source: int | None = None
    trial: Trial | None = None

    @property
    def name(self) -> str:
        """``topic-partition``."""
        return f"{self.topic}-{self.partition}"

    @property
    def behind_since(self) -> int | None:
        """The time at which the position could have been newer for the first time; None if it could not."""
        return self.reached[0].at if self.reached else None

    def stuck_since(self, at: int) -> int | None:
        """The time since which there is something to copy and nothing is copied; None unless for two minutes.

        A lag that was there at the first look may be as old as the position: known after half a minute.
        """
        if not self.lag_records or self.stopped or self.unknown:
            return None
        since, still = self.behind_since, self.committed_at or self.looked_at
        if since is None or still is None:
            return None
        if since != self.looked_at or at - since < _SEEN_MS:
            still = max(since, still)
        return still if at - still >= STUCK_MS else None


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One source topic; ``active`` while it exists and its name matches. ``stopped`` is why none of it can be copied as
    things are; ``left_out`` are the settings that its copy has to do without. ``state`` is the one that operators have
    given to the copy.
    """

    name: str
    copy: str
    active: bool
    stopped: Fault | None
    partitions: tuple[PartitionStatus, ...]
    left_out: tuple[str, ...] = ()
    state: CopyState = CopyState.ACTIVE

    @property
    def copied(self) -> int | None:
        """The records of all partitions."""
        return total(partition.copied for partition in self.partitions)

    @property
    def rate(self) -> float | None:
        """Records a second."""
        return total(partition.rate for partition in self.partitions)

    @property
    def lag_records(self) -> int | None:
        """Number of uncopied offsets of all partitions."""
        return total(partition.lag_records for partition in self.partitions)

    @property
    def lag_seconds(self) -> float | None:
        """The lag of the partition that is furthest behind."""
        lags = [partition.lag_seconds for partition in self.partitions]
        known = [lag for lag in lags if lag is not None]
        return max(known, default=0.0) if len(known) == len(lags) else None

    @property
    def bytes(self) -> int | None:
        """The bytes of all partitions."""
        return total(partition.bytes for partition in self.partitions)


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """One lane; ``owner`` took it last, None before the first."""

    lane: int
    owner: Owner | None
    held: OpenTransaction | None


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """One of the clusters; ``unknown`` is the reason if there are no facts of it now."""

    side: Side
    cluster_id: str
    unknown: Fault | None


@dataclass(frozen=True, slots=True)
class AuditStatus:
    """The audit table; ``lag_seconds`` is the time that its files are behind, None if unknown.

    ``problem`` is the reason that it cannot be written now.
    """

    path: str
    lag_seconds: float | None
    problem: Fault | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a link at ``at``; without lanes if the destination does not answer, or nothing was ever copied.

    ``stopped`` is the reason that the link must not continue.
    ``groups`` are the synced groups as last seen; ``groups_unknown`` is the reason that they are out of date.
    ``max_bytes_per_second`` bounds what is read from the source; 0: nothing does. ``previous_secret`` is true as long
    as SHARED_SECRET_PREVIOUS is set. ``heartbeat`` is the newest that came from the source, where the link writes some.
    ``states`` are those that operators have given to the link, or to topics. ``excluded`` are source topics that are
    not copied though their names match, each with the reason; empty while the source does not answer. ``sql`` is the
    newest change of the link's SQL, None if there never was any. ``audit`` is the table that this replicator writes.
    ``problems`` are those of the running replicator; ``problems_unknown`` is the reason that they are not known.
    ``chosen`` are the only topics that it shows, if they were chosen; ``others`` are the last commits of the others.
    """

    replicator: str
    at: int
    source: ClusterStatus
    destination: ClusterStatus
    lanes: tuple[LaneStatus, ...]
    topics: tuple[TopicStatus, ...]
    stopped: Fault | None = None
    max_bytes_per_second: int = 0
    previous_secret: bool = False
    groups: tuple[GroupPlan, ...] = ()
    groups_unknown: Fault | None = None
    heartbeat: Heartbeat | None = None
    states: tuple[StateRecord, ...] = ()
    excluded: tuple[tuple[str, str], ...] = ()
    sql: SqlChange | None = None
    audit: AuditStatus | None = None
    problems: Problems = field(default_factory=dict)
    problems_unknown: str = ""
    chosen: tuple[str, ...] = ()
    others: tuple[int, ...] = ()

    @property
    def failing(self) -> Problems:
        """The lasting problems that matter though nothing is behind, and records that Spark ends with."""
        ended = {
            each.name: Fault(_ENDED.format(*each.trial), since)
            for topic in self.topics
            for each in topic.partitions
            if topic.state is CopyState.ACTIVE and each.name not in self.problems
            if each.trial and each.trial.start == each.next_offset
            if (since := each.committed_at or self.at) < self.at - _SILENCE_MS or each.trial.tries > 1
        }
        return {**persistent(self.problems, self.at), **ended}

    @property
    def stuck(self) -> dict[PartitionStatus, int]:
        """The partitions of which nothing is copied though there is something, with the time since when.

        Within a bound of bytes, a partition waits for a turn of its own and of each that was copied since.
        """
        growing = (each for each in self.topics if each.active and each.state is CopyState.ACTIVE and not each.stopped)
        parts = [partition for topic in growing for partition in topic.partitions]
        commits = sorted([*self.others, *(each.committed_at or 0 for each in parts)])
        waited = {each: since for each in parts if (since := each.stuck_since(self.at)) is not None}
        turns = {since: 1 + len(commits) - bisect_right(commits, since) for since in waited.values()}
        bound, tasks = self.max_bytes_per_second, len({lane.owner.worker for lane in self.lanes if lane.owner}) or 1
        turn = _LEADERS * max(_TURN_MS, 1000 * _TURN_BYTES * tasks // bound) if bound else 0
        return {each: since for each, since in waited.items() if self.at - since >= STUCK_MS + turns[since] * turn}

    @property
    def passing(self) -> Problems:
        """The other problems that nothing else shows: new ones, and those of work beside the copying."""
        failing = self.failing
        return {s: fault for s, fault in self._untold.items() if s not in failing and not has_a_view(s)}

    @property
    def _untold(self) -> Problems:
        stops = {f"topic {topic.name}" for topic in self.topics if topic.stopped}
        stops |= {partition.name for partition in self.partitions if partition.stopped}
        return {s: fault for s, fault in self.problems.items() if s not in stops}

    @property
    def partitions(self) -> Iterable[PartitionStatus]:
        """The partitions of all topics."""
        return (partition for topic in self.topics for partition in topic.partitions)

    @property
    def state(self) -> LinkState:
        """The link in one word."""
        if self.source.unknown or self.destination.unknown or any(p.unknown for p in self.partitions):
            return LinkState.UNKNOWN
        if self.stopped:
            return LinkState.STOPPED
        if not any(lane.owner for lane in self.lanes):
            return LinkState.NEVER_RUN
        growing = [topic for topic in self.topics if topic.state is CopyState.ACTIVE]
        if any(topic.stopped or any(p.stopped for p in topic.partitions) for topic in growing):
            return LinkState.STOPPED
        if self.failing or self.stuck:
            return LinkState.FAILING
        if self.topics and not growing:
            return LinkState.INACTIVE
        if not any(topic.active for topic in self.topics):
            return LinkState.NOTHING_MATCHES
        if not any(topic.active for topic in growing):
            return LinkState.INACTIVE
        if any(p.lag_records != 0 for topic in growing if topic.active for p in topic.partitions):
            return LinkState.COPYING
        return LinkState.COPIED

    def only(self, topics: Collection[str]) -> "Snapshot":
        """The snapshot of these topics alone, and of the groups that have consumed one of them."""
        groups = tuple(group for group in self.groups if any(each.source[0] in topics for each in group.partitions))
        shown = tuple(topic for topic in self.topics if topic.name in topics)
        others = tuple(each.committed_at or 0 for each in self.partitions if each.topic not in topics)
        return replace(self, topics=shown, groups=groups, chosen=tuple(topics), others=others)


def total(numbers: Iterable[_Number | None]) -> _Number | None:
    """The sum; None when one of the numbers is None."""
    result: _Number | None = None
    for number in numbers:
        if number is None:
            return None
        result = number if result is None else result + number
    return result
