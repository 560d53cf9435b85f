"""The page of the metrics, by the process that serves them."""

from collections.abc import Sequence

from appliance.metrics import ORDER, REPLICATOR, TUNNEL, Metric
from deploy.docs.markdown import plain

_HEAD = """\
# Metrics

What Prometheus scrapes at `/metrics` of each process ([where](status.md#health-and-metrics)). An unknown value has no
sample; it is never 0. `topic` is the source topic's name. No label holds a client's address or a secret. Published
names never change. [Alerts](../night/alerts.md) are made of them.
"""

_PARTS: Sequence[tuple[str, str, Sequence[Metric]]] = (
    ("The replicator", "At `CONSOLE_LISTEN` of the destination VM.", REPLICATOR),
    (
        "The two ends of the tunnel",
        "At `TUNNEL_STATUS_LISTEN` of both VMs; `kafka_tunnel_server_reachable` and all below it on the destination VM "
        "alone. The Prometheus client's own metrics of the process are there too (`process_open_fds` and so on).",
        TUNNEL,
    ),
    ("A total order", "At `CONSOLE_LISTEN` of the VM beside each cluster.", ORDER),
)


def page() -> str:
    """The text of docs/reference/metrics.md."""
    return _HEAD + "".join(f"\n## {title}\n\n{text}\n\n{_table(metrics)}" for title, text, metrics in _PARTS)


def _table(metrics: Sequence[Metric]) -> str:
    rows = (f"| `{_shown(metric)}` | {metric.kind} | {plain(metric.help)} |\n" for metric in metrics)
    return "| metric | type | meaning |\n|---|---|---|\n" + "".join(rows)


def _shown(metric: Metric) -> str:
    return f"{metric.name}{{{','.join(metric.labels)}}}" if metric.labels else metric.name
