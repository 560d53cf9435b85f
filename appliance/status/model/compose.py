"""The snapshot, composed from the facts of both clusters and the snapshot before."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from appliance.grouping import grouped
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.link.model.agreement import MADE_ANEW, Agreement, SourceLog, agree
from appliance.link.model.checkpoint import start_place
from appliance.link.model.claims import Claim, belongs_to_another
from appliance.link.model.copy_states import States, effective
from appliance.link.model.layout import Layout
from appliance.link.model.link_check import link_fault
from appliance.link.model.link_sql import SqlChange, newest_change
from appliance.link.model.naming import Naming
from appliance.link.model.position import UNKNOWN, Position
from appliance.link.model.problems import Fault
from appliance.link.model.replicas import discover, too_small
from appliance.settings.values import ClusterSettings, Settings, Start, TopicNaming
from appliance.status.model.facts import DestinationFacts, Log, Observation, SourceFacts
from appliance.status.model.snapshot import (
    BlockingTransaction,
    ClusterStatus,
    LaneStatus,
    PartitionStatus,
    Reached,
    Snapshot,
    TopicStatus,
)

_LOOKED_FOR_MS = 10_000
"""Time after the first look from which on the age of a lag is at least known to be that long."""

_REACHED_MAX = 64


def compose(
    settings: Settings,
    source: Observation[SourceFacts],
    destination: Observation[DestinationFacts],
    previous: Snapshot | None,
    now: int,
) -> Snapshot:
    """The snapshot at ``now``, in milliseconds; ``previous`` gives the beginnings of lasting states, and the rate."""
    return _Composer(settings, source, destination, previous, now).snapshot()


@dataclass(frozen=True, slots=True)
class _Composer:
    settings: Settings
    source: Observation[SourceFacts]
    destination: Observation[DestinationFacts]
    previous: Snapshot | None
    now: int

    def snapshot(self) -> Snapshot:
        before, states = self.previous, self._states()
        return Snapshot(
            replicator=self.settings.replicator,
            at=self.now,
            source=self._cluster(self.settings.source, self.source.problem, before.source if before else None),
            destination=self._cluster(
                self.settings.destination, self.destination.problem, before.destination if before else None
            ),
            lanes=tuple(self._lanes()),
            topics=tuple(self._topics()),
            stopped=self._fault(self._link_fault(), before.stopped if before else None),
            max_bytes_per_second=self.settings.engine.max_bytes_per_second,
            previous_secret=bool(self.settings.tunnel.previous_secret),
            heartbeat=self.destination.now.heartbeat if self.destination.now else None,
            states=tuple(states[topic] for topic in sorted(states)),
            excluded=tuple(self._excluded()),
            sql=self._sql(),
        )

    def _excluded(self) -> Iterator[tuple[str, str]]:
        """The source topics that are not copied though their names match, with the reasons."""
        naming = Naming.of(self.settings)
        topics = self.source.now.metadata.topics if self.source.now else {}
        for name in sorted(topics):
            if reason := naming.left_out(name, topics[name].internal, topics):
                yield name, reason

    def _sql(self) -> SqlChange | None:
        """The newest change of the SQL, since the first lane wrote it down."""
        topic = self.destination.facts.topic if self.destination.facts else None
        changes = topic.sql_changes if topic else []
        newest = newest_change(changes)
        same = [change for change in changes if newest is not None and change.sql == newest.sql]
        return min(same, key=lambda change: change.since, default=None)

    def _states(self) -> States:
        """The last seen states of copies: a cluster that does not answer now changes none."""
        return self.destination.facts.states if self.destination.facts else {}

    def _link_fault(self) -> str:
        """The reason that the link must not continue, as far as both clusters show it now."""
        source, destination = self.source.now, self.destination.now
        if source is None or destination is None or destination.topic is None:
            return ""
        link, there = self.settings.replicator, destination.metadata.topics
        copies = [
            (name, topic_id)
            for (name, topic_id), claim in destination.claims.items()
            if claim.link == link and name in there and there[name].id == topic_id
        ]
        return link_fault(destination.topic, source.metadata.cluster_id, copies, Naming.of(self.settings))

    def _cluster(self, cluster: ClusterSettings, problem: str, before: ClusterStatus | None) -> ClusterStatus:
        unknown = self._fault(problem, before.unknown if before else None)
        return ClusterStatus(cluster.side, cluster.cluster_id, unknown)

    def _fault(self, reason: str, before: Fault | None) -> Fault | None:
        """Keep the time at which a lasting fault began, though its reason may change."""
        return Fault(reason, before.since if before else self.now) if reason else None

    def _lanes(self) -> Iterator[LaneStatus]:
        facts = self.destination.now
        if facts is None or facts.topic is None:
            return
        for lane, owner in enumerate(facts.owners[: facts.topic.lanes]):
            yield LaneStatus(lane, owner, facts.holding.get(lane))

    def _topics(self) -> Iterator[TopicStatus]:
        """The present and past copied topics; by their last known names if a cluster does not answer now."""
        naming = Naming.of(self.settings)
        before = {topic.name: topic for topic in self.previous.topics} if self.previous else {}
        active = self._active(naming)
        unfit = self._unfit(naming)
        remembered = self._remembered()
        layout = self._layout()
        unanswered = {topic for topic, _ in self.source.facts.unanswered} if self.source.facts else set()
        hidden = {topic for topic in unanswered if effective(self._states(), topic).follows}
        for name in sorted({*active, *remembered}):
            numbers = sorted({*range(active.get(name, 0)), *remembered.get(name, ())})
            own = [Partition(name, number) for number in numbers]
            known = before.get(name)
            statuses = {status.partition: status for status in known.partitions} if known else {}
            is_active = name in active or name in hidden or self.source.facts is None
            yield TopicStatus(
                name=name,
                copy=naming.destination(name),
                active=is_active,
                stopped=self._fault(unfit.get(name, ""), known.stopped if known else None),
                partitions=tuple(self._partition(each, is_active, statuses.get(each.number), layout) for each in own),
                left_out=self._left_out(naming.destination(name)),
                state=effective(self._states(), name),
            )

    def _active(self, naming: Naming) -> dict[str, int]:
        """The source topics with matching names, and their numbers of partitions."""
        topics = self.source.facts.metadata.topics if self.source.facts else {}
        return {topic.name: len(topic.leaders) for topic in naming.copied(topics)}

    def _remembered(self) -> Mapping[str, Collection[int]]:
        """The topics with a position or a gap, with the partitions that have one."""
        facts = self.destination.facts
        return grouped([*facts.positions, *facts.gaps]) if facts else {}

    def _unfit(self, naming: Naming) -> Mapping[str, str]:
        source, destination = self.source.now, self.destination.now
        if source is None or destination is None:
            return {}
        found = discover(source.metadata, destination.metadata, naming)
        ours = {position.destination_id for position in destination.positions.values()}
        foreign = {topic.name: too_small(topic, copy) for topic, copy in found.smaller if copy.id not in ours}
        others = {
            name: belongs_to_another(copy, claim, naming)
            for name in {replica.source_topic for replica in found.replicas}
            if (claim := self._claim(copy := naming.destination(name)))
            and claim.link != self.settings.replicator
            and not claim.admits(naming)
        }
        return {**found.unfit, **foreign, **others, **source.unfit}

    def _claim(self, copy: str) -> Claim | None:
        """The link that an existing copy belongs to."""
        facts = self.destination.now
        topic = facts.metadata.topics.get(copy) if facts else None
        return facts.claims.get((copy, topic.id)) if facts and topic else None

    def _left_out(self, copy: str) -> tuple[str, ...]:
        claim = self._claim(copy)
        return claim.left_out if claim else ()

    def _layout(self) -> Layout | None:
        """The link's layout; it is made of a record, once for all partitions."""
        facts = self.destination.now
        return facts.topic.layout if facts and facts.topic else None

    def _partition(
        self, key: Partition, active: bool, before: PartitionStatus | None, layout: Layout | None
    ) -> PartitionStatus:
        source, destination = self.source.now, self.destination.now
        position = destination.positions.get(key) if destination else None
        log = source.logs.get(key) if source and active else None
        copied = (position.records if position else 0) if destination else None
        found = self._agreement(key, position, log)
        lag = self._lag(key, log) if position is None else found.uncopied
        ends, looked_at = (before.reached, before.looked_at) if before else ((), None)
        if log and lag is not None:
            ends = reached(ends, log.stable_end, log.stable_end - lag, self.now)
            looked_at = min(looked_at or self.now, self.now)
        stopped = self._fault(found.lost, before.stopped if before else None)
        if position and position.stopped:
            stopped = Fault(position.stopped, position.stopped_at)
        holder = source.holding.get(key) if source else None
        return PartitionStatus(
            topic=key[0],
            partition=key[1],
            lane=layout.lane_of(*key) if layout else None,
            next_offset=position.next_offset if position and position.next_offset != UNKNOWN else None,
            end_offset=log.stable_end if log else None,
            copied=copied,
            bytes=(position.bytes if position else 0) if destination else None,
            rate=self._rate(copied, before),
            lag_records=lag,
            reached=ends,
            looked_at=looked_at,
            committed_at=destination.committed_at.get(key) if destination else None,
            lag_seconds=self._lag_seconds(lag, ends, looked_at),
            latency_ms=self._latency(key, position, before),
            stopped=stopped if active else None,
            unknown=self._fault(
                self._unknown(key, active) or ("" if stopped else found.unrelated or found.unknown),
                before.unknown if before else None,
            ),
            held=BlockingTransaction(holder, log.end - log.stable_end) if holder and log else None,
            gaps=destination.gaps.get(key, ()) if destination else None,
            dropped=self._dropped(position),
            written=source.written.get(key, 0) if source and source.written is not None else None,
            filtered=(position.filtered if position else 0) if destination else None,
            dead_letters=(position.dead_letters if position else 0) if destination else None,
            lost_at_source=found.lost_at_source,
            trial=position.trial if position and active else None,
        )

    def _agreement(self, key: Partition, held: Position | None, log: Log | None) -> Agreement:
        """The agreement of both logs; none where nothing was copied yet, or the topic is gone at the source."""
        source, destination = self.source.now, self.destination.now
        topic_id = source.topic_id(key[0]) if source else None
        if not (source and topic_id and destination and held) or held.next_offset == UNKNOWN:
            return Agreement()
        follows = effective(self._states(), key[0]).follows
        if self._is_gone(key):
            anew = is_another(held.source_id, topic_id) and follows
            return Agreement(
                lost=f"source topic {key[0]} {MADE_ANEW}, with fewer partitions" if anew else "", uncopied=0
            )
        end, held_to, epoch = log.stable_end if log else None, None, source.metadata.leader_epoch(*key)
        if log and log.asked_epoch == held.leader_epoch >= 0:
            held_to = log.held_to
        elif end is not None and end < held.next_offset and epoch != held.leader_epoch:
            end = None  # the position has moved since the ends, and the epochs, were asked for
        found = agree(key[0], held, SourceLog(topic_id, end, epoch, held_to), destination.copies[key])
        return found if follows else replace(found, lost="")

    def _is_gone(self, key: Partition) -> bool:
        """True of a partition that its topic has no longer, as it was recreated with fewer."""
        topic = self.source.now.metadata.topics.get(key[0]) if self.source.now else None
        return topic is not None and 0 < len(topic.leaders) <= key[1]

    def _dropped(self, position: Position | None) -> int | None:
        identical = self.settings.topics.naming is TopicNaming.IDENTICAL
        return (position.dropped if position else 0) if identical and self.destination.now else None

    def _unknown(self, key: Partition, active: bool) -> str:
        if self.destination.problem or self.source.problem:
            return self.destination.problem or self.source.problem
        source = self.source.now
        return source.unanswered.get(key, "") if source and active else ""

    def _lag(self, key: Partition, log: Log | None) -> int | None:
        """The lag of a partition without a position."""
        destination = self.destination.now
        if log is None or destination is None:
            return 0 if destination and self._is_gone(key) else None
        begin = self._start_offset(key, destination, log)
        return log.stable_end - begin if begin is not None and begin >= 0 else None

    def _start_offset(self, key: Partition, destination: DestinationFacts, log: Log) -> int | None:
        """The first offset of a partition without a position; None until the link is made."""
        topic, source = destination.topic, self.source.now
        if topic is None or topic.link is None:
            return log.start if self.settings.topics.start is Start.EARLIEST else None
        source_id = source.topic_id(key[0]) if source else None
        begin = start_place(*key, source_id, topic.checkpoints[0].starts)
        return log.start if begin is None else begin.offset

    def _lag_seconds(self, lag: int | None, ends: Sequence[Reached], looked_at: int | None) -> float | None:
        """The time since the first of the ends; unknown while it may have been there long before the first look."""
        if lag == 0:
            return 0.0
        if lag is None or not ends:
            return None
        since = ends[0].at
        return None if since == looked_at and self.now - since < _LOOKED_FOR_MS else max(0, self.now - since) / 1000

    def _latency(self, key: Partition, position: Position | None, before: PartitionStatus | None) -> int | None:
        committed = self.destination.now.committed_at.get(key) if self.destination.now else None
        if committed is None or position is None or position.timestamp < 0 or before is None or before.copied is None:
            return None
        latency = committed - position.timestamp
        return latency if latency >= 0 and position.records > before.copied else None

    def _rate(self, copied: int | None, before: PartitionStatus | None) -> float | None:
        if before is None or self.previous is None or before.copied is None or copied is None:
            return None
        passed = (self.now - self.previous.at) / 1000
        return (copied - before.copied) / passed if passed > 0 and copied >= before.copied else None


def reached(before: Sequence[Reached], end: int, position: int, now: int) -> tuple[Reached, ...]:
    """The ends of a source partition above a position, after its log was seen to end at ``end`` now.

    Of many, the one is dropped without which the ages of those around it differ least: each age is right to a quarter.
    """
    above = [Reached(each.end, min(each.at, now)) for each in before if position < each.end <= end]
    if end > position and (not above or above[-1].end < end):
        above.append(Reached(end, now))
    if len(above) > _REACHED_MAX:
        ages = [now - each.at + 1 for each in above]
        del above[min(range(1, len(above) - 1), key=lambda at: ages[at - 1] / ages[at + 1])]
    return tuple(above)
