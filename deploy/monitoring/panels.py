"""The rows of the dashboard, with their panels.

Expressions name bare metrics; ``dashboard`` restricts each selector to the links and instances that are chosen above
the panels. With thousands of partitions, only sums and the ten worst are drawn.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class PanelType(enum.StrEnum):
    """The type of a panel, as Grafana calls it."""

    STAT = "stat"
    TIME_SERIES = "timeseries"
    TABLE = "table"


_TOPIC = "{{link}} {{topic}}"
_END = "{{link}} {{instance}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    ``queries`` are expressions, each with the legend of its series. ``red_from`` and ``red_below`` are the first bad
    values. ``words`` replace values. A table hides the value itself unless ``value`` names its column.
    """

    title: str
    type: PanelType
    queries: Mapping[str, str]
    unit: str = "short"
    red_from: float | None = None
    red_below: float | None = None
    words: Mapping[int, str] = field(default_factory=dict)
    value: str = ""


def _stat(
    title: str, expression: str, unit: str = "short", red_from: float | None = None, red_below: float | None = None
) -> Panel:
    return Panel(title, PanelType.STAT, {expression: "{{link}}"}, unit, red_from, red_below)


def _yes_or_no(title: str, metric: str, yes: str, no: str, *, good: bool = True) -> Panel:
    """A stat of a metric that is 1 or 0; ``good`` is the good one of them."""
    red_from, red_below = (None, 1) if good else (1, None)
    return Panel(title, PanelType.STAT, {metric: _END}, "short", red_from, red_below, {1: yes, 0: no})


def _series(title: str, queries: Mapping[str, str], unit: str = "short") -> Panel:
    return Panel(title, PanelType.TIME_SERIES, queries, unit)


def _table(title: str, expression: str, unit: str = "short", value: str = "") -> Panel:
    return Panel(title, PanelType.TABLE, {expression: ""}, unit, value=value)


def _rate(counter: str, *labels: str) -> str:
    """The rate of a counter, summed for each link and each of the labels."""
    return f"sum by ({', '.join(('link', *labels))}) (rate({counter}[$__rate_interval]))"


def _worst(gauge: str, function: str = "max") -> str:
    """The ten topics with the largest values of a gauge."""
    return f"topk(10, {function} by (link, topic) ({gauge}))"


def _p99(durations: str) -> str:
    return f"histogram_quantile(0.99, sum by (link, instance, le) (rate({durations}_bucket[$__rate_interval])))"


AT_A_GLANCE = (
    _yes_or_no("Source cluster", "kafka_replicator_source_reachable", "answers", "does not answer"),
    _yes_or_no("Destination cluster", "kafka_replicator_destination_reachable", "answers", "does not answer"),
    _yes_or_no("Source VM, from the destination VM", "kafka_tunnel_server_reachable", "reached", "not reached"),
    _series("State of the link", {"kafka_replicator_link_state": "{{link}} {{state}}"}),
    _stat("Age of the snapshot", "time() - kafka_replicator_snapshot_timestamp_seconds", "s", red_from=30),
    _stat("Lag, worst partition", "max by (link) (kafka_replicator_lag_seconds)", "s", red_from=60),
    _stat("Lag, records", "sum by (link) (kafka_replicator_lag_records)"),
    _stat("Stopped partitions", "sum by (link) (kafka_replicator_stopped)", red_from=1),
    _stat("Stopped topics", "sum by (link) (kafka_replicator_topic_stopped)", red_from=1),
    _stat("Gaps", "sum by (link) (kafka_replicator_gaps_total)", red_from=1),
    _stat("Longest held by a transaction", "max by (link) (kafka_replicator_held_seconds)", "s", red_from=900),
    _stat("Brokers without an endpoint", 'sum by (link) (kafka_tunnel_brokers{state!="open"})', red_from=1),
    _stat("Days of the first certificate", "min by (link) (kafka_tunnel_certificate_days_left)", red_below=30),
    _stat(
        "Days of the other end's certificate", "min by (link) (kafka_tunnel_peer_certificate_days_left)", red_below=30
    ),
)

COPYING = (
    _series("Records copied", {_rate("kafka_replicator_records_copied_total"): "{{link}}"}, "cps"),
    _series(
        "Bytes copied, and MAX_BYTES_PER_SECOND",
        {
            _rate("kafka_replicator_bytes_copied_total"): "{{link}}",
            "kafka_replicator_max_bytes_per_second > 0": "{{link}} bound",
        },
        "Bps",
    ),
    _series("Lag in seconds, ten worst topics", {_worst("kafka_replicator_lag_seconds"): _TOPIC}, "s"),
    _series("Lag in records, ten worst topics", {_worst("kafka_replicator_lag_records", "sum"): _TOPIC}),
    _series(
        "Records copied, ten busiest topics",
        {f"topk(10, {_rate('kafka_replicator_records_copied_total', 'topic')})": _TOPIC},
        "cps",
    ),
    _series(
        "Held by transactions at the source, ten worst topics", {_worst("kafka_replicator_held_seconds"): _TOPIC}, "s"
    ),
    _series(
        "Records left out by SQL, and dead letters",
        {
            _rate("kafka_replicator_records_filtered_total"): "{{link}} left out",
            _rate("kafka_replicator_dead_letters_total"): "{{link}} dead letters",
        },
        "cps",
    ),
    _series("Latency, ten slowest topics", {_worst("kafka_replicator_latency_seconds"): _TOPIC}, "s"),
    _series("Heartbeat from source to destination", {"kafka_replicator_heartbeat_milliseconds": "{{link}}"}, "ms"),
    _series("Lag of the audit table", {"kafka_replicator_audit_lag_seconds": "{{link}}"}, "s"),
    _series("Age of the newest heartbeat", {"time() - kafka_replicator_heartbeat_timestamp_seconds": "{{link}}"}, "s"),
)

TOPICS_AND_LANES = (
    _table("Stopped partitions", "kafka_replicator_stopped > 0"),
    _table("Stopped topics", "kafka_replicator_topic_stopped > 0"),
    _series(
        "Unknown partitions, and those of which nothing is copied",
        {
            "sum by (link) (kafka_replicator_unknown)": "{{link}} unknown",
            "sum by (link) (kafka_replicator_stuck)": "{{link}} not copied",
        },
    ),
    _table("Problems of the replicator, by age in seconds", "kafka_replicator_problem_seconds"),
    _series("Topics in each state", {"sum by (link, state) (kafka_replicator_topic_state)": "{{link}} {{state}}"}),
    _series(
        "Replicators of the link",
        {
            "max by (link, state) (kafka_replicator_members)": "{{link}} {{state}}",
            "max by (link) (kafka_replicator_standbys_wanted)": "{{link}} to stand by",
            "max by (link) (kafka_replicator_activations_total)": "{{link}} became active",
        },
    ),
    _table("Active replicators", "kafka_replicator_active_since_seconds * 1000", "dateTimeAsIso", value="since"),
    _table(
        "Owners of the lanes",
        "kafka_replicator_lane_owner_since_seconds * 1000",
        "dateTimeAsIso",
        value="since",
    ),
)

GROUPS = (
    _series("Groups in each state", {"sum by (link, state) (kafka_replicator_groups)": "{{link}} {{state}}"}),
    _series("Offsets behind, ten worst groups", {"topk(10, kafka_replicator_group_lag_offsets)": "{{link}} {{group}}"}),
)

TUNNEL = (
    _table("Ends", "kafka_tunnel_build_info"),
    _table("Source VMs", "kafka_tunnel_source_vm_well"),
    _table("Brokers", "kafka_tunnel_broker == 1"),
    _yes_or_no("Brokers listed by the source cluster", "kafka_tunnel_metadata_known", "yes", "no"),
    _stat("Age of that list", "time() - kafka_tunnel_metadata_timestamp_seconds", "s", red_from=30),
    _stat("Open endpoints", "sum by (link) (kafka_tunnel_endpoints_open)"),
    _yes_or_no("SHARED_SECRET_PREVIOUS", "kafka_tunnel_previous_secret", "set", "not set", good=False),
    _series(
        "Bytes carried",
        {_rate("kafka_tunnel_bytes_total", "instance", "direction"): f"{_END} {{{{direction}}}}"},
        "Bps",
    ),
    _series(
        "Connections",
        {
            "kafka_tunnel_connections_open": f"{_END} open",
            "kafka_tunnel_connections_waiting": f"{_END} without a target",
        },
    ),
    _series(
        "Connections through each source VM",
        {"kafka_tunnel_source_vm_connections_open": "{{link}} {{server}}"},
    ),
    _series("Connections accepted", {_rate("kafka_tunnel_connections_accepted_total", "instance"): _END}, "cps"),
    _series(
        "Connections refused",
        {_rate("kafka_tunnel_connections_refused_total", "instance", "cause"): f"{_END} {{{{cause}}}}"},
        "cps",
    ),
    _series(
        "Connections ended",
        {_rate("kafka_tunnel_relays_ended_total", "instance", "cause"): f"{_END} {{{{cause}}}}"},
        "cps",
    ),
    _series("Brokers in each state", {"sum by (link, state) (kafka_tunnel_brokers)": "{{link}} {{state}}"}),
    _series("Handshakes, 99th percentile", {_p99("kafka_tunnel_handshake_seconds"): _END}, "s"),
    _series("Dials, 99th percentile", {_p99("kafka_tunnel_dial_seconds"): _END}, "s"),
    _series("DNS queries", {_rate("kafka_tunnel_dns_queries_total", "outcome"): "{{link}} {{outcome}}"}, "cps"),
    _series(
        "Failed listings of the brokers",
        {_rate("kafka_tunnel_metadata_failures_total", "cause"): "{{link}} {{cause}}"},
        "cps",
    ),
)

_PART = "{{link}} {{topic}} in {{cluster}}"

ORDER = (
    _yes_or_no("Clusters of the order", "kafka_order_cluster_reachable", "answers", "does not answer"),
    _yes_or_no("Home", "kafka_order_home_silent", "silent", "heard", good=False),
    _stat("Partitions without a home", "sum by (link) (1 - kafka_order_open)", red_from=1),
    _stat("Stopped partitions of the order", "sum by (link) (kafka_order_stopped)", red_from=1),
    _stat("Partitions alone", "sum by (link) (kafka_order_alone)", red_from=1),
    _stat("Age of the look at the clusters", "time() - kafka_order_snapshot_timestamp_seconds", "s", red_from=30),
    _series(
        "Records ordered, each cluster",
        {"sum by (link, instance, cluster) (rate(kafka_order_records[$__rate_interval]))": "{{link}} {{cluster}}"},
        "cps",
    ),
    _series(
        "Records lacking, ten worst", {"topk(10, sum by (link, cluster, topic) (kafka_order_lacks_records))": _PART}
    ),
    _series(
        "Offsets of T to take, ten worst",
        {"topk(10, sum by (link, cluster, topic) (kafka_order_backlog_offsets))": _PART},
    ),
    _table("Homes of the lanes", "kafka_order_home"),
    _table("Homes since", "kafka_order_home_since_seconds * 1000", "dateTimeAsIso", value="since"),
    _series("Epochs", {"max by (link) (kafka_order_epoch)": "{{link}}"}),
)

ROWS = {
    "Links at a glance": AT_A_GLANCE,
    "Copying": COPYING,
    "Topics and lanes": TOPICS_AND_LANES,
    "Groups": GROUPS,
    "Tunnel": TUNNEL,
    "Total order": ORDER,
}
