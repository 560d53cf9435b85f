"""The counters of both ends as Prometheus metrics; pure. An unknown value has no sample: a 0 would calm an alert.

Every label has few values: those of an enumeration, or the source cluster's own brokers. No client's address is one.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from appliance.dns.responder import Outcome, QueryCounters
from appliance.gateway.model.brokers import BrokerState, BrokerView, Fault
from appliance.gateway.model.health import Keys
from appliance.metrics import counter, gauge, histogram
from appliance.settings.values import Side, TunnelSettings
from appliance.tunnel.limits.counters import BOUNDS, Counters, Histogram, Refusal
from appliance.tunnel.model.servers import Condition, Server
from appliance.tunnel.stream.relay import End
from appliance.version import VERSION


class TunnelCollector(Collector):
    """The metrics that both ends have."""

    def __init__(self, side: Side, settings: TunnelSettings, counters: Counters, keys: Callable[[], Keys]) -> None:
        self._build = (VERSION, side.value, settings.carrier)
        self._counters = counters
        self._keys = keys

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        counters = self._counters
        build = gauge("kafka_tunnel_build_info")
        build.add_metric(self._build, 1)
        yield build
        keys = self._keys()
        yield gauge("kafka_tunnel_certificate_days_left", keys.days_left)
        if keys.peer_days_left is not None:
            yield gauge("kafka_tunnel_peer_certificate_days_left", keys.peer_days_left)
        yield gauge("kafka_tunnel_previous_secret", keys.previous_secret)
        yield counter("kafka_tunnel_connections_accepted_total", counters.accepted)
        yield gauge("kafka_tunnel_connections_open", counters.open)
        yield gauge("kafka_tunnel_connections_waiting", counters.open - counters.carrying)
        yield _counters(
            "kafka_tunnel_connections_refused_total", ((cause.value, counters.refused[cause]) for cause in Refusal)
        )
        yield _counters(
            "kafka_tunnel_bytes_total",
            (("to_target", counters.to_target.bytes), ("from_target", counters.from_target.bytes)),
        )
        yield _counters(
            "kafka_tunnel_relays_ended_total", ((end.name.lower(), counters.ended[end.name]) for end in End)
        )
        yield from _of_source_vms(counters.servers)
        yield _histogram("kafka_tunnel_handshake_seconds", counters.handshakes)
        yield _histogram("kafka_tunnel_dial_seconds", counters.dials)


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
        numbers = self._numbers
        unasked = numbers.server_fault is None
        yield gauge("kafka_tunnel_server_reachable", None if unasked else not numbers.server_fault)
        yield gauge("kafka_tunnel_endpoints_open", numbers.endpoints)
        yield _counters(
            "kafka_tunnel_dns_queries_total", ((outcome.value, numbers.queries[outcome]) for outcome in Outcome)
        )
        yield from _of_brokers(numbers.view)
        yield _counters(
            "kafka_tunnel_metadata_failures_total", ((fault.value, numbers.failures.get(fault, 0)) for fault in Fault)
        )


_OF_THE_VM = {
    *("kafka_tunnel_build_info", "kafka_tunnel_certificate_days_left", "kafka_tunnel_previous_secret"),
    "kafka_tunnel_dns_queries",
}
"""Metrics that are the same on all ways of an order's gateway."""


class OrderCollector(Collector):
    """The metrics of an order's gateway: those of each way have the label ``cluster``."""

    def __init__(self, ways: Mapping[str, Iterable[Collector]]) -> None:
        self._ways = ways

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        families: dict[str, Metric] = {}
        for cluster, collectors in self._ways.items():
            for family in itertools.chain.from_iterable(each.collect() for each in collectors):
                own = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                if family.name in _OF_THE_VM:
                    own.samples = family.samples
                else:
                    own.samples += [one._replace(labels={"cluster": cluster, **one.labels}) for one in family.samples]
        yield from families.values()


def _of_source_vms(servers: Sequence[Server]) -> Iterator[Metric]:
    well, carried = gauge("kafka_tunnel_source_vm_well"), gauge("kafka_tunnel_source_vm_connections_open")
    for each in servers:
        carried.add_metric((each.name,), len(each.carried))
        if each.condition is not Condition.UNTRIED:
            well.add_metric((each.name,), each.condition is Condition.WELL)
    yield from (well, carried)


def _of_brokers(view: BrokerView) -> Iterator[Metric]:
    unasked = view.at is None and view.fault is None
    yield gauge("kafka_tunnel_metadata_timestamp_seconds", view.at)
    yield gauge("kafka_tunnel_metadata_known", None if unasked else view.fault is None)
    brokers = gauge("kafka_tunnel_brokers")
    for state in BrokerState if view.at is not None else ():
        brokers.add_metric((state.value,), len(view.in_state(state)))
    yield brokers
    one = gauge("kafka_tunnel_broker")
    for target, state in view.state.items():
        one.add_metric((str(target), state.value), 1)
    yield one


def _counters(name: str, values: Iterable[tuple[str, float]]) -> CounterMetricFamily:
    family = counter(name)
    for value, number in values:
        family.add_metric((value,), number)
    return family


def _histogram(name: str, durations: Histogram) -> HistogramMetricFamily:
    cumulative = map(float, itertools.accumulate(durations.counts))
    return histogram(name, list(zip((*map(str, BOUNDS), "+Inf"), cumulative, strict=True)), durations.seconds)


def exposition(*collectors: Collector) -> bytes:
    """The text that Prometheus scrapes, with prometheus-client's own metrics of the process."""
    registry = CollectorRegistry(auto_describe=False)
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)
    return generate_latest(registry)
