"""The state of a link at one moment, as frozen values. Unknown values are None, never 0; times are milliseconds."""

import enum
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from appliance.groups.model.group_plan import GroupPlan
from appliance.kafka.client.open_transactions import OpenTransaction
from appliance.link.model.checkpoint import Owner
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.link_sql import SqlChange
from appliance.link.model.mirror_records import Heartbeat
from appliance.link.model.problems import Fault, Problems, has_a_view, persistent
from appliance.link.model.standby import STANDS_BY, Members
from appliance.settings.values import Side
from appliance.status.model.topic_status import HIDDEN, STUCK_MS, PartitionStatus, TopicStatus


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


_SILENCE_MS = 60_000
_ENDED = "SQL in flight: Spark has ended, or made no progress, between offset {} and offset {}"
_TURN_MS, _TURN_BYTES, _LEADERS = 1_000, 2 * 1024 * 1024, 4
"""A partition's longest turn within a bound, where some leaders take turns: a second's bytes, or a large answer."""


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """One lane; ``owner`` took it last, None before the first."""

    lane: int
    owner: Owner | None
    held: OpenTransaction | None


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """One of the clusters; ``unknown`` is the reason if there are no facts of it now."""

    side: Side = field(metadata=HIDDEN)
    cluster_id: str = field(metadata={"key": "cluster"})
    unknown: Fault | None


@dataclass(frozen=True, slots=True)
class AuditStatus:
    """The audit table; ``lag_seconds`` is the time that its files are behind, None if unknown.

    ``problem`` is the reason that it cannot be written now.
    """

    path: str
    lag_seconds: float | None
    problem: Fault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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
    ``stands_by`` is true if this VM's replicator does. ``replicators`` are the link's as last seen, and the reason in
    ``replicators_unknown`` says that they are out of date; ``standbys_wanted`` of them are to stand by.
    ``chosen_by`` is the setting that chooses the link's topics;
    ``chosen`` are the only topics that it shows, if they were chosen; ``others`` are the last commits of the others.
    """

    replicator: str
    at: int = field(metadata={"followed_by": ("state",)})
    stopped: Fault | None = field(default=None, metadata={"followed_by": ("troubles",)})
    problems: Problems = field(default_factory=dict)
    problems_unknown: str = field(default="", metadata={"followed_by": ("remarks",)})
    source: ClusterStatus
    destination: ClusterStatus
    stands_by: bool = False
    replicators: Members = field(default_factory=Members)
    replicators_unknown: Fault | None = None
    standbys_wanted: int = 0
    max_bytes_per_second: int = 0
    heartbeat: Heartbeat | None = None
    sql: SqlChange | None = None
    audit: AuditStatus | None = None
    states: tuple[StateRecord, ...] = field(default=(), metadata={"followed_by": ("progress",)})
    lanes: tuple[LaneStatus, ...]
    topics: tuple[TopicStatus, ...]
    excluded: tuple[tuple[str, str], ...] = ()
    groups_unknown: Fault | None = None
    groups: tuple[GroupPlan, ...] = ()
    previous_secret: bool = field(default=False, metadata=HIDDEN)
    chosen_by: str = field(metadata=HIDDEN)
    chosen: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    others: tuple[int, ...] = field(default=(), metadata=HIDDEN)

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
    def standby_missing(self) -> bool:
        """True if fewer replicators stand by than are to, or nobody knows."""
        states = [] if self.replicators_unknown else [*map(self.replicators.state, self.replicators.members)]
        return states.count(STANDS_BY) < self.standbys_wanted

    @property
    def passing(self) -> Problems:
        """The other problems that nothing else shows: new ones, and those of work beside the copying."""
        failing = self.failing
        return {s: fault for s, fault in self._without_stops.items() if s not in failing and not has_a_view(s)}

    @property
    def _without_stops(self) -> Problems:
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
        present = tuple(topic for topic in self.topics if topic.name in topics)
        others = tuple(each.committed_at or 0 for each in self.partitions if each.topic not in topics)
        return replace(self, topics=present, groups=groups, chosen=tuple(topics), others=others)
