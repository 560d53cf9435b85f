"""The counters of both ends as Prometheus metrics; pure. An unknown value has no sample: a 0 would calm an alert.

Every label has few values: those of an enumeration, or the source cluster's own brokers. No client's address is one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from appliance.dns.responder import Outcome, QueryCounters
from appliance.gateway.model.brokers import BrokerState, BrokerView, Fault
from appliance.gateway.model.health import Keys
from appliance.settings.values import Side, TunnelSettings
from appliance.tunnel.model.counters import BOUNDS, Counters, Histogram, Refusal
from appliance.tunnel.stream.relay import End
from appliance.version import VERSION

_PREFIX = "kafka_tunnel_"


class TunnelCollector(Collector):
    """The metrics that both ends have."""

    def __init__(self, side: Side, settings: TunnelSettings, counters: Counters, keys: Callable[[], Keys]) -> None:
        self._labels = {"version": VERSION, "side": side.value, "carrier": settings.carrier}
        self._counters = counters
        self._keys = keys

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        counters = self._counters
        build = GaugeMetricFamily(f"{_PREFIX}build_info", "1; the labels say what runs.", labels=tuple(self._labels))
        build.add_metric(tuple(self._labels.values()), 1)
        yield build
        keys = self._keys()
        yield _gauge("certificate_days_left", "Days until this end's certificate is no longer valid.", keys.days_left)
        peer = GaugeMetricFamily(
            f"{_PREFIX}peer_certificate_days_left", "Days that the other end's certificate had left at its handshake."
        )
        if keys.peer_days_left is not None:
            peer.add_metric((), keys.peer_days_left)
        yield peer
        yield _gauge("previous_secret", "1 as long as SHARED_SECRET_PREVIOUS is set, else 0.", keys.previous_secret)
        yield _counter("connections_accepted", "Connections begun with.", counters.accepted)
        yield _gauge("connections_open", "Open connections.", counters.open)
        yield _gauge("connections_waiting", "Open connections without a target yet.", counters.open - counters.carrying)
        yield _counters(
            "connections_refused",
            "Refused connections, by cause.",
            "cause",
            ((cause.value, counters.refused[cause]) for cause in Refusal),
        )
        yield _counters(
            "bytes",
            "Bytes carried, by direction.",
            "direction",
            (("to_target", counters.to_target.bytes), ("from_target", counters.from_target.bytes)),
        )
        yield _counters(
            "relays_ended",
            "Ended connections, by cause.",
            "cause",
            ((end.name.lower(), counters.ended[end.name]) for end in End),
        )
        yield _histogram("handshake_seconds", "Successful handshakes between the ends.", counters.handshakes)
        yield _histogram("dial_seconds", "Successful dials to the broker, or to the other end.", counters.dials)


@dataclass(frozen=True, slots=True)
class DestinationNumbers:
    """The destination VM's numbers beside its connections."""

    server_fault: str | None
    endpoints: int
    queries: QueryCounters
    view: BrokerView
    failures: Mapping[Fault, int]


class DestinationCollector(Collector):
    """The metrics that only the destination's end has."""

    def __init__(self, numbers: DestinationNumbers) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        numbers, view = self._numbers, self._numbers.view
        reached = GaugeMetricFamily(
            f"{_PREFIX}server_reachable", "1 if the last attempt to reach the other end succeeded, else 0."
        )
        if numbers.server_fault is not None:
            reached.add_metric((), not numbers.server_fault)
        yield reached
        yield _gauge("endpoints_open", "Open endpoints.", numbers.endpoints)
        yield _counters(
            "dns_queries",
            "Queries to the DNS shim, by outcome.",
            "outcome",
            ((outcome.value, numbers.queries[outcome]) for outcome in Outcome),
        )
        yield from _of_brokers(view)
        yield _counters(
            "metadata_failures",
            "Failed attempts to list the source cluster's brokers, by cause.",
            "cause",
            ((fault.value, numbers.failures.get(fault, 0)) for fault in Fault),
        )


def _of_brokers(view: BrokerView) -> Iterator[Metric]:
    told = GaugeMetricFamily(
        f"{_PREFIX}metadata_timestamp_seconds", "Time of the source cluster's last list of brokers."
    )
    known = GaugeMetricFamily(
        f"{_PREFIX}metadata_known", "1 if the source cluster listed its brokers at the last attempt, else 0."
    )
    if view.at is not None:
        told.add_metric((), view.at)
    if view.at is not None or view.fault is not None:
        known.add_metric((), view.fault is None)
    yield told
    yield known
    brokers = GaugeMetricFamily(f"{_PREFIX}brokers", "Brokers of the source cluster, by state.", labels=("state",))
    for state in BrokerState if view.at is not None else ():
        brokers.add_metric((state.value,), len(view.those(state)))
    yield brokers
    one = GaugeMetricFamily(
        f"{_PREFIX}broker", "1 for the state of each broker of the source cluster.", labels=("broker", "state")
    )
    for target, state in view.state.items():
        one.add_metric((str(target), state.value), 1)
    yield one


def _counter(name: str, explanation: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(_PREFIX + name, explanation, value)


def _gauge(name: str, explanation: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(_PREFIX + name, explanation, value)


def _counters(name: str, explanation: str, label: str, values: Iterable[tuple[str, float]]) -> CounterMetricFamily:
    family = CounterMetricFamily(_PREFIX + name, explanation, labels=(label,))
    for key, value in values:
        family.add_metric((key,), value)
    return family


def _histogram(name: str, explanation: str, histogram: Histogram) -> HistogramMetricFamily:
    total, buckets = 0, []
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), histogram.counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return HistogramMetricFamily(_PREFIX + name, explanation, buckets, histogram.seconds)


def exposition(*collectors: Collector) -> bytes:
    """The text that Prometheus scrapes, with prometheus-client's own metrics of the process."""
    registry = CollectorRegistry(auto_describe=False)
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)
    return generate_latest(registry)
