"""The metrics of the replicator, of the two ends of the tunnel, and of an order: one list for each page ``/metrics``.

The collectors (``model/metrics.py`` of ``status``, ``gateway`` and ``order``) take names, labels and help from here, so
a metric that is not listed cannot be exported. ``deploy`` makes docs/reference/metrics.md, the alerts and
the dashboard of them; tests compare. Published names never change.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily


class Kind(enum.StrEnum):
    """The type of a metric, as Prometheus calls it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as Prometheus scrapes it; by its conventions, the name of a counter ends with ``_total``."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    is_histogram: bool = False

    @property
    def kind(self) -> Kind:
        """The type."""
        if self.is_histogram:
            return Kind.HISTOGRAM
        return Kind.COUNTER if self.name.endswith("_total") else Kind.GAUGE


_PARTITION = ("topic", "partition")

REPLICATOR = (
    Metric("kafka_replicator_records_copied_total", "Records copied since the link was made.", _PARTITION),
    Metric(
        "kafka_replicator_bytes_copied_total", "Bytes of record batches copied since the link was made.", _PARTITION
    ),
    Metric(
        "kafka_replicator_records_filtered_total",
        "Records that SQL in flight has left out since the link was made.",
        _PARTITION,
    ),
    Metric(
        "kafka_replicator_dead_letters_total",
        "Records that SQL in flight failed on, and that are in a dead-letter topic.",
        _PARTITION,
    ),
    Metric("kafka_replicator_gaps_total", "Entries in the gap ledger.", _PARTITION),
    Metric(
        "kafka_replicator_lag_records", "Source offsets still to be copied, up to the last stable offset.", _PARTITION
    ),
    Metric(
        "kafka_replicator_lag_seconds",
        "Time since the position could have been newer while there is a lag, else 0.",
        _PARTITION,
    ),
    Metric(
        "kafka_replicator_latency_seconds",
        "Time from the newest record's timestamp to the commit of its copy; no sample while nothing is copied.",
        _PARTITION,
    ),
    Metric("kafka_replicator_stopped", "1 while the partition waits for your decision, else 0.", _PARTITION),
    Metric(
        "kafka_replicator_unknown",
        "1 while the state of the partition, or of its copy, is unknown, else 0.",
        _PARTITION,
    ),
    Metric(
        "kafka_replicator_stuck",
        "1 while nothing is copied though there is something, for two minutes, else 0.",
        _PARTITION,
    ),
    Metric(
        "kafka_replicator_held_seconds",
        "Time for which an open transaction at the source has held the partition; 0 if there is none.",
        _PARTITION,
    ),
    Metric("kafka_replicator_link_state", "1 for the state of the link, as the status has it.", ("state",)),
    Metric(
        "kafka_replicator_problem_seconds",
        "Age of a problem of the running replicator; no sample once it is over.",
        ("subject",),
    ),
    Metric("kafka_replicator_topic_stopped", "1 while no partition of the topic can be copied, else 0.", ("topic",)),
    Metric(
        "kafka_replicator_topic_state",
        "1 for the state that operators have given to the topic's copy: active, paused, failing over, promoted, "
        "failing back, resetting, removed or deleted.",
        ("topic", "state"),
    ),
    Metric(
        "kafka_replicator_lane_owner_since_seconds",
        "Time at which the lane's present owner, a run of the replicator, took it.",
        ("lane", "run", "host"),
    ),
    Metric("kafka_replicator_members", "Replicators by state: active, standing by, not ready, leaving.", ("state",)),
    Metric("kafka_replicator_active_since_seconds", "Time since which a host's replicator copies.", ("host",)),
    Metric("kafka_replicator_activations_total", "Replicators that became the active one, since there was none."),
    Metric("kafka_replicator_standbys_wanted", "REPLICATOR_STANDBYS: replicators that are to stand by."),
    Metric("kafka_replicator_max_bytes_per_second", "The present MAX_BYTES_PER_SECOND; 0: no bound."),
    Metric("kafka_replicator_group_lag_offsets", "Offsets that a group is behind at the destination.", ("group",)),
    Metric("kafka_replicator_groups", "Groups by state; unknown while nobody can see them.", ("state",)),
    Metric(
        "kafka_replicator_heartbeat_milliseconds",
        "With MM2_FORMATS=yes: time of a heartbeat to a source broker and from there into the destination.",
    ),
    Metric("kafka_replicator_heartbeat_timestamp_seconds", "Time of the newest heartbeat."),
    Metric(
        "kafka_replicator_audit_lag_seconds",
        "With AUDIT_PATH: time that the files of the audit table are behind the commits.",
    ),
    Metric("kafka_replicator_source_reachable", "1 while the source answers, else 0."),
    Metric("kafka_replicator_destination_reachable", "1 while the destination answers, else 0."),
    Metric(
        "kafka_replicator_snapshot_timestamp_seconds",
        "Time of the newest snapshot. When it is older than 30 s, all other samples are absent.",
    ),
)
"""The metrics of the replicator, on CONSOLE_LISTEN."""

TUNNEL = (
    Metric(
        "kafka_tunnel_build_info", "1; carrier is tcp, or ssh where TUNNEL_SSH is set.", ("version", "side", "carrier")
    ),
    Metric(
        "kafka_tunnel_certificate_days_left", "Days until this end's certificate is no longer valid; warn below 30."
    ),
    Metric(
        "kafka_tunnel_peer_certificate_days_left",
        "Days that the other end's certificate had left at the last handshake; no sample before the first one.",
    ),
    Metric("kafka_tunnel_previous_secret", "1 while SHARED_SECRET_PREVIOUS is set, else 0."),
    Metric("kafka_tunnel_connections_accepted_total", "Connections accepted."),
    Metric("kafka_tunnel_connections_open", "Open connections."),
    Metric("kafka_tunnel_connections_waiting", "Open connections without a target yet."),
    Metric("kafka_tunnel_connections_refused_total", "Refused connections, by cause.", ("cause",)),
    Metric(
        "kafka_tunnel_bytes_total", "Bytes carried, to_target and from_target, counted continuously.", ("direction",)
    ),
    Metric(
        "kafka_tunnel_relays_ended_total",
        "Ended connections: complete; near_lost or far_lost, if one side broke (far is the broker's side); silent, if "
        "no data came after one direction had ended; idle, after TUNNEL_IDLE_SECONDS without data.",
        ("cause",),
    ),
    Metric("kafka_tunnel_handshake_seconds", "Duration of successful handshakes between the ends.", is_histogram=True),
    Metric(
        "kafka_tunnel_dial_seconds",
        "Duration of successful dials: on the source VM to a broker, including the resolution of its name; on the "
        "destination VM to the other end.",
        is_histogram=True,
    ),
    Metric("kafka_tunnel_server_reachable", "1 if the last attempt to reach the other end succeeded, else 0."),
    Metric(
        "kafka_tunnel_source_vm_well", "1 if the source VM answered last and takes connections, else 0.", ("server",)
    ),
    Metric("kafka_tunnel_source_vm_connections_open", "Open connections through the source VM.", ("server",)),
    Metric("kafka_tunnel_endpoints_open", "Open endpoints: pairs of address and port that lead to a broker."),
    Metric(
        "kafka_tunnel_dns_queries_total",
        "Queries to the shim: mapped to an endpoint, forwarded, refused, servfail, malformed, dropped while too many "
        "were being answered.",
        ("outcome",),
    ),
    Metric(
        "kafka_tunnel_brokers",
        "Brokers of the source cluster: open; refused by the allow-list; closed, if the endpoint cannot be opened.",
        ("state",),
    ),
    Metric("kafka_tunnel_broker", "1 for the present state of each broker.", ("broker", "state")),
    Metric("kafka_tunnel_metadata_known", "1 if the source cluster listed its brokers at the last attempt, else 0."),
    Metric("kafka_tunnel_metadata_timestamp_seconds", "Time of the last successful listing."),
    Metric(
        "kafka_tunnel_metadata_failures_total",
        "Failed attempts: unreachable, credentials, identity (its certificate), protocol, settings, other.",
        ("cause",),
    ),
)
"""The metrics of the tunnel's ends, on TUNNEL_STATUS_LISTEN; the last ones are those of the destination VM alone."""

_PART = ("cluster", *_PARTITION)

ORDER = (
    Metric("kafka_order_cluster_reachable", "1 while the cluster answers, else 0.", ("cluster",)),
    Metric("kafka_order_epoch", "Number of the lane's newest epoch.", ("lane",)),
    Metric("kafka_order_home", "1 for the home of the lane's newest epoch.", ("lane", "home")),
    Metric(
        "kafka_order_home_since_seconds",
        "Time at which that home promised the epoch; no sample while it cannot be read.",
        ("lane",),
    ),
    Metric(
        "kafka_order_home_silent",
        "1 while this VM's process has heard nothing for six seconds of a home that works, else 0.",
        ("lane",),
    ),
    Metric(
        "kafka_order_open",
        "1 if the home has opened its epoch in the partition, else 0; no sample while it cannot be read.",
        _PARTITION,
    ),
    Metric("kafka_order_records", "Records of the order that the cluster's T-global has.", _PART),
    Metric(
        "kafka_order_lacks_records", "Records that the home has taken, and that the cluster's T-global lacks.", _PART
    ),
    Metric("kafka_order_backlog_offsets", "Offsets of T in the cluster that wait for their place in the order.", _PART),
    Metric("kafka_order_stopped", "1 while the partition waits for your decision in the cluster, else 0.", _PART),
    Metric("kafka_order_alone", "1 while the cluster shows what no other one has, else 0.", _PART),
    Metric(
        "kafka_order_snapshot_timestamp_seconds",
        "Time of the newest look at all clusters. When it is older than 30 s, all other samples are absent.",
    ),
)
"""The metrics of the process of a total order, on CONSOLE_LISTEN."""

METRICS = {metric.name: metric for metric in (*REPLICATOR, *TUNNEL, *ORDER)}


def gauge(name: str, value: float | None = None) -> GaugeMetricFamily:
    """A listed gauge; with ``value``, one without labels. An unknown value has no sample: a 0 would calm an alert."""
    metric = _listed(name, Kind.GAUGE)
    family = GaugeMetricFamily(name, metric.help, labels=metric.labels)
    if value is not None:
        family.add_metric((), value)
    return family


def counter(name: str, value: float | None = None) -> CounterMetricFamily:
    """A listed counter; with ``value``, one without labels."""
    metric = _listed(name, Kind.COUNTER)
    family = CounterMetricFamily(name, metric.help, labels=metric.labels)
    if value is not None:
        family.add_metric((), value)
    return family


def histogram(name: str, buckets: Sequence[tuple[str, float]], total: float) -> HistogramMetricFamily:
    """A listed histogram without labels: the cumulative count of each bucket, and the sum of all values."""
    return HistogramMetricFamily(name, _listed(name, Kind.HISTOGRAM).help, buckets, total)


def _listed(name: str, kind: Kind) -> Metric:
    metric = METRICS[name]
    if metric.kind is not kind:
        raise KeyError(f"{name} is a {metric.kind}, not a {kind}")
    return metric
