"""The snapshot, composed from the facts of both clusters and the snapshot before."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from appliance.grouping import grouped
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.claims import Claim, belongs_to_another
from appliance.link.model.copy_states import States, effective
from appliance.link.model.link_check import link_fault
from appliance.link.model.link_sql import SqlChange, newest_change
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import discover, too_small
from appliance.link.model.standby import Members
from appliance.settings.values import ClusterSettings, Route, Settings
from appliance.status.model.compose_partition import PartitionComposer, lasting
from appliance.status.model.facts import DestinationFacts, Observation, SourceFacts
from appliance.status.model.snapshot import ClusterStatus, LaneStatus, Snapshot
from appliance.status.model.topic_status import TopicStatus


@dataclass(frozen=True, slots=True)
class Composer:
    """Composes the snapshot at ``now``, in milliseconds.

    ``previous`` gives the beginnings of lasting states, and the rate.
    """

    settings: Settings
    source: Observation[SourceFacts]
    destination: Observation[DestinationFacts]
    previous: Snapshot | None
    now: int

    def snapshot(self) -> Snapshot:
        """The snapshot of all that is known."""
        before, states = self.previous, self._states()
        observed = self.destination.facts.members if self.destination.facts else Observation()
        problem = self.destination.problem or observed.problem or ("" if observed.facts else "members come or go")
        return Snapshot(
            replicator=self.settings.replicator,
            at=self.now,
            source=self._cluster(self.settings.source, self.source.problem, before.source if before else None),
            destination=self._cluster(
                self.settings.destination, self.destination.problem, before.destination if before else None
            ),
            replicators=observed.facts or Members(),
            replicators_unknown=lasting(problem, before.replicators_unknown if before else None, self.now),
            standbys_wanted=self.settings.engine.standbys,
            lanes=tuple(self._lanes()),
            topics=tuple(self._topics()),
            stopped=lasting(self._link_fault(), before.stopped if before else None, self.now),
            max_bytes_per_second=self.settings.engine.max_bytes_per_second,
            previous_secret=bool(self.settings.tunnel.previous_secret) and self.settings.route is Route.TUNNEL,
            heartbeat=self.destination.now.heartbeat if self.destination.now else None,
            states=tuple(states[topic] for topic in sorted(states)),
            excluded=tuple(self._excluded()),
            sql=self._sql(),
            chosen_by=Naming.of(self.settings).policy.chosen_by,
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
        unknown = lasting(problem, before.unknown if before else None, self.now)
        return ClusterStatus(cluster.side, cluster.cluster_id, unknown)

    def _lanes(self) -> Iterator[LaneStatus]:
        facts = self.destination.now
        if facts is None or facts.topic is None:
            return
        for lane, owner in enumerate(facts.owners[: facts.topic.lanes]):
            yield LaneStatus(lane, owner, facts.holding.get(lane))

    def _topics(self) -> Iterator[TopicStatus]:
        """The present and past copied topics; by their last known names if a cluster does not answer now."""
        naming, states = Naming.of(self.settings), self._states()
        before = {topic.name: topic for topic in self.previous.topics} if self.previous else {}
        active, remembered, unfit = self._active(naming), self._remembered(), self._unfit(naming)
        unanswered = {topic for topic, _ in self.source.facts.unanswered} if self.source.facts else set()
        hidden = {topic for topic in unanswered if effective(states, topic).follows}
        status_of = self._partitions().status
        for name in sorted({*active, *remembered}):
            numbers = sorted({*range(active.get(name, 0)), *remembered.get(name, ())})
            old = before.get(name)
            statuses = {status.partition: status for status in old.partitions} if old else {}
            is_active = name in active or name in hidden or self.source.facts is None
            yield TopicStatus(
                name=name,
                copy=naming.destination(name),
                active=is_active,
                stopped=lasting(unfit.get(name, ""), old.stopped if old else None, self.now),
                partitions=tuple(status_of(Partition(name, n), is_active, statuses.get(n)) for n in numbers),
                left_out=self._left_out(naming.destination(name)),
                state=effective(states, name),
            )

    def _partitions(self) -> PartitionComposer:
        """The composer of the partitions; the layout is made of a record, once for all."""
        destination = self.destination.now
        layout = destination.topic.layout if destination and destination.topic else None
        previous_at = self.previous.at if self.previous else None
        facts = self.settings, self.source, self.destination
        return PartitionComposer(*facts, self._states(), layout, previous_at, self.now)

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
        discovery = discover(source.metadata, destination.metadata, naming)
        ours = {position.destination_id for position in destination.positions.values()}
        foreign = {topic.name: too_small(topic, copy) for topic, copy in discovery.smaller if copy.id not in ours}
        others = {
            name: belongs_to_another(copy, claim, naming)
            for name in {replica.source_topic for replica in discovery.replicas}
            if (claim := self._claim(copy := naming.destination(name))) and not claim.admits(naming)
        }
        return {**discovery.unfit, **foreign, **others, **source.unfit}

    def _claim(self, copy: str) -> Claim | None:
        """The link that an existing copy belongs to."""
        facts = self.destination.now
        topic = facts.metadata.topics.get(copy) if facts else None
        return facts.claims.get((copy, topic.id)) if facts and topic else None

    def _left_out(self, copy: str) -> tuple[str, ...]:
        claim = self._claim(copy)
        return claim.left_out if claim else ()
