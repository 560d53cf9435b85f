"""The snapshot as Prometheus metrics. An unknown value has no sample, because a 0 would calm an alert."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from appliance.failover.model.group_plan import GroupState
from appliance.link.model.mirror_records import Heartbeat
from appliance.status.model.snapshot import PartitionStatus, Snapshot

_PREFIX = "kafka_replicator_"
_OF_A_PARTITION = ("topic", "partition")

Value = Callable[[PartitionStatus, Snapshot], float | None]


def _held_seconds(partition: PartitionStatus, snapshot: Snapshot) -> float | None:
    if partition.end_offset is None:
        return None
    return max(0, snapshot.at - partition.held.transaction.began) / 1000 if partition.held else 0


_COUNTERS: dict[str, tuple[str, Value]] = {
    "records_copied": ("Records copied, ever.", lambda p, _: p.copied),
    "bytes_copied": ("Bytes of record batches copied since the link was made.", lambda p, _: p.bytes),
    "gaps": (
        "Gaps in the copy: entries of the gap ledger.",
        lambda p, _: None if p.gaps is None else len(p.gaps),
    ),
}
_GAUGES: dict[str, tuple[str, Value]] = {
    "lag_records": (
        "Source offsets to be copied, up to the last stable one; transaction markers and compacted offsets count.",
        lambda p, _: p.lag_records,
    ),
    "lag_seconds": ("Age of the newest copied record while there is a lag, else 0.", lambda p, _: p.lag_seconds),
    "stopped": (
        "1 while the partition waits for the operator's decision.",
        lambda p, _: None if p.copied is None else p.stopped is not None,
    ),
    "held_seconds": (
        "Time for which an open transaction at the source has held the partition; 0 if there is none.",
        _held_seconds,
    ),
}


class SnapshotCollector(Collector):
    """The metrics of one snapshot; of none before the first one, and of a stale one only when it was taken."""

    def __init__(self, snapshot: Snapshot | None, fresh: bool) -> None:
        self._snapshot = snapshot
        self._fresh = fresh

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        yield GaugeMetricFamily(
            f"{_PREFIX}snapshot_timestamp_seconds", "Time of the newest snapshot of both clusters.", snapshot.at / 1000
        )
        if not self._fresh:
            return
        for cluster in (snapshot.source, snapshot.destination):
            yield GaugeMetricFamily(
                f"{_PREFIX}{cluster.side}_reachable",
                f"1 when the {cluster.side} cluster answers.",
                not cluster.unknown,
            )
        yield GaugeMetricFamily(
            f"{_PREFIX}max_bytes_per_second",
            "Bytes of records that are read from the source in a second, at most; 0: no bound.",
            snapshot.max_bytes_per_second,
        )
        yield from _of_heartbeat(snapshot.heartbeat)
        yield from _of_topics(snapshot)
        yield from _of_lanes(snapshot)
        yield from _of_partitions(snapshot)
        yield from _of_groups(snapshot)


def _of_heartbeat(heartbeat: Heartbeat | None) -> Iterator[Metric]:
    if heartbeat is None:
        return
    yield GaugeMetricFamily(
        f"{_PREFIX}heartbeat_timestamp_seconds", "When the newest heartbeat left the source.", heartbeat.at / 1000
    )
    if heartbeat.way is not None:
        yield GaugeMetricFamily(
            f"{_PREFIX}heartbeat_milliseconds",
            "Milliseconds of a heartbeat's way to the source and from there to the destination.",
            heartbeat.way,
        )


def _of_topics(snapshot: Snapshot) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        f"{_PREFIX}topic_stopped", "1 while no partition of the topic can be copied.", labels=("topic",)
    )
    known = not (snapshot.source.unknown or snapshot.destination.unknown)
    for topic in snapshot.topics if known else ():
        family.add_metric((topic.name,), topic.stopped is not None)
    yield family
    states = GaugeMetricFamily(
        f"{_PREFIX}topic_state",
        "1 for the state that operators have given to the topic's copy.",
        labels=("topic", "state"),
    )
    for topic in [] if snapshot.destination.unknown else snapshot.topics:
        states.add_metric((topic.name, topic.state), 1)
    yield states


def _of_lanes(snapshot: Snapshot) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        f"{_PREFIX}lane_owner_since_seconds",
        "Time at which the lane's present owner, a run of the replicator, took it.",
        labels=("lane", "run", "host"),
    )
    for lane in snapshot.lanes:
        if lane.owner:
            family.add_metric((str(lane.lane), lane.owner.run, lane.owner.host), lane.owner.since / 1000)
    yield family


def _of_partitions(snapshot: Snapshot) -> Iterator[Metric]:
    for name, (explanation, value) in _COUNTERS.items():
        yield _filled(CounterMetricFamily(_PREFIX + name, explanation, labels=_OF_A_PARTITION), value, snapshot)
    for name, (explanation, value) in _GAUGES.items():
        yield _filled(GaugeMetricFamily(_PREFIX + name, explanation, labels=_OF_A_PARTITION), value, snapshot)


def _of_groups(snapshot: Snapshot) -> Iterator[Metric]:
    lags = GaugeMetricFamily(
        f"{_PREFIX}group_lag_offsets", "Offsets that the group is behind at the destination.", labels=("group",)
    )
    states = GaugeMetricFamily(f"{_PREFIX}groups", "Groups whose offsets follow, by their state.", labels=("state",))
    groups = snapshot.groups if snapshot.groups_unknown is None else ()
    counts = dict.fromkeys(GroupState if groups else (), 0)
    for group in groups:
        counts[group.state] += 1
        if (lag := group.lag) is not None:
            lags.add_metric((group.name,), lag)
    for state, count in counts.items():
        states.add_metric((state,), count)
    yield from (lags, states)


def _filled(
    family: CounterMetricFamily | GaugeMetricFamily, value: Value, snapshot: Snapshot
) -> CounterMetricFamily | GaugeMetricFamily:
    for partition in snapshot.partitions:
        number = value(partition, snapshot)
        if number is not None:
            family.add_metric((partition.topic, str(partition.partition)), number)
    return family


def exposition(snapshot: Snapshot | None, fresh: bool) -> bytes:
    """The text that Prometheus scrapes."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SnapshotCollector(snapshot, fresh))
    return generate_latest(registry)
