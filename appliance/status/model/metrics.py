"""The snapshot as Prometheus metrics. An unknown value has no sample, because a 0 would calm an alert."""

from collections.abc import Callable, Iterator
from dataclasses import fields

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from appliance.groups.model.group_plan import GroupState
from appliance.link.model.problems import has_a_view
from appliance.link.model.standby import STATES
from appliance.metrics import METRICS, Kind, counter, gauge
from appliance.output import printable
from appliance.status.model.snapshot import Snapshot
from appliance.status.model.topic_status import PartitionStatus

Value = Callable[[PartitionStatus, Snapshot], float | None]


def _field(name: str) -> Value:
    return lambda partition, _: getattr(partition, name)


def _held_seconds(partition: PartitionStatus, snapshot: Snapshot) -> float | None:
    if partition.end_offset is None:
        return None
    return max(0, snapshot.at - partition.held.transaction.began) / 1000 if partition.held else 0


_OF_PARTITIONS: dict[str, Value] = {
    **{each.metadata["metric"]: _field(each.name) for each in fields(PartitionStatus) if "metric" in each.metadata},
    "kafka_replicator_gaps_total": lambda p, _: None if p.gaps is None else len(p.gaps),
    "kafka_replicator_latency_seconds": lambda p, _: None if p.latency_ms is None else p.latency_ms / 1000,
    "kafka_replicator_stopped": lambda p, _: None if p.copied is None else p.stopped is not None,
    "kafka_replicator_unknown": lambda p, _: p.unknown is not None,
    "kafka_replicator_held_seconds": _held_seconds,
}


class SnapshotCollector(Collector):
    """The metrics of one snapshot; of none before the first one, and of a stale one only when it was taken."""

    def __init__(self, snapshot: Snapshot | None, fresh: bool) -> None:
        self._snapshot = snapshot
        self._fresh = fresh

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families, with names in their labels as they print."""
        for family in self._families():
            for number, each in enumerate(family.samples):
                labels = {name: printable(text) for name, text in each.labels.items()}
                family.samples[number] = each._replace(labels=labels)
            yield family

    def _families(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        if snapshot is None:
            return
        yield gauge("kafka_replicator_snapshot_timestamp_seconds", snapshot.at / 1000)
        if not self._fresh:
            return
        yield gauge("kafka_replicator_source_reachable", not snapshot.source.unknown)
        yield gauge("kafka_replicator_destination_reachable", not snapshot.destination.unknown)
        yield gauge("kafka_replicator_max_bytes_per_second", snapshot.max_bytes_per_second)
        yield from _of_state(snapshot)
        yield from _of_members(snapshot)
        if snapshot.heartbeat is not None:
            yield gauge("kafka_replicator_heartbeat_timestamp_seconds", snapshot.heartbeat.at / 1000)
            yield gauge("kafka_replicator_heartbeat_milliseconds", snapshot.heartbeat.way)
        if snapshot.audit is not None and snapshot.audit.lag_seconds is not None:
            yield gauge("kafka_replicator_audit_lag_seconds", snapshot.audit.lag_seconds)
        yield from _of_topics(snapshot)
        yield from _of_lanes(snapshot)
        yield from _of_partitions(snapshot)
        yield _of_stuck(snapshot)
        yield from _of_groups(snapshot)


def _of_state(snapshot: Snapshot) -> Iterator[Metric]:
    states, problems = gauge("kafka_replicator_link_state"), gauge("kafka_replicator_problem_seconds")
    states.add_metric((snapshot.state,), 1)
    for subject, fault in snapshot.problems.items():
        if not has_a_view(subject):
            problems.add_metric((subject,), max(0, snapshot.at - fault.since) / 1000)
    yield from (states, problems)


def _of_members(snapshot: Snapshot) -> Iterator[Metric]:
    yield gauge("kafka_replicator_standbys_wanted", snapshot.standbys_wanted)
    if snapshot.replicators_unknown is None:
        known, states = snapshot.replicators, [*map(snapshot.replicators.state, snapshot.replicators.members)]
        members, since = gauge("kafka_replicator_members"), gauge("kafka_replicator_active_since_seconds")
        for state in STATES:
            members.add_metric((state,), states.count(state))
        if known.active:
            since.add_metric((known.active.host,), known.assignment.since / 1000)
        yield from (members, since, counter("kafka_replicator_activations_total", known.assignment.number))


def _of_topics(snapshot: Snapshot) -> Iterator[Metric]:
    stopped = gauge("kafka_replicator_topic_stopped")
    for topic in [] if snapshot.source.unknown or snapshot.destination.unknown else snapshot.topics:
        stopped.add_metric((topic.name,), topic.stopped is not None)
    yield stopped
    states = gauge("kafka_replicator_topic_state")
    for topic in [] if snapshot.destination.unknown else snapshot.topics:
        states.add_metric((topic.name, topic.state), 1)
    yield states


def _of_lanes(snapshot: Snapshot) -> Iterator[Metric]:
    owners = gauge("kafka_replicator_lane_owner_since_seconds")
    for lane in snapshot.lanes:
        if lane.owner:
            owners.add_metric((str(lane.lane), lane.owner.run, lane.owner.host), lane.owner.since / 1000)
    yield owners


def _of_partitions(snapshot: Snapshot) -> Iterator[Metric]:
    for name, value in _OF_PARTITIONS.items():
        family = counter(name) if METRICS[name].kind is Kind.COUNTER else gauge(name)
        for partition in snapshot.partitions:
            if (number := value(partition, snapshot)) is not None:
                family.add_metric((partition.topic, str(partition.partition)), number)
        yield family


def _of_stuck(snapshot: Snapshot) -> Metric:
    family, stuck = gauge("kafka_replicator_stuck"), {(each.topic, each.partition) for each in snapshot.stuck}
    for each in snapshot.partitions:
        if each.lag_records is not None:
            family.add_metric((each.topic, str(each.partition)), (each.topic, each.partition) in stuck)
    return family


def _of_groups(snapshot: Snapshot) -> Iterator[Metric]:
    lags, states = gauge("kafka_replicator_group_lag_offsets"), gauge("kafka_replicator_groups")
    groups = snapshot.groups if snapshot.groups_unknown is None else ()
    unseen = {} if snapshot.groups_unknown is None else {GroupState.UNKNOWN: max(1, len(snapshot.groups))}
    counts = dict.fromkeys(GroupState, 0) if groups else unseen
    for group in groups:
        counts[group.state] += 1
        if (lag := group.lag) is not None:
            lags.add_metric((group.name,), lag)
    for state, count in counts.items():
        states.add_metric((state,), count)
    yield from (lags, states)


def exposition(snapshot: Snapshot | None, fresh: bool) -> bytes:
    """The text that Prometheus scrapes."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SnapshotCollector(snapshot, fresh))
    return generate_latest(registry)
