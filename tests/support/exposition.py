"""Metrics as Prometheus reads them."""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from appliance.dns.responder import Outcome
from appliance.errors import Unreachable
from appliance.gateway.model.brokers import Fault
from appliance.gateway.model.health import Keys
from appliance.gateway.model.metrics import DestinationNumbers, TunnelCollector
from appliance.metrics import Kind, Metric
from appliance.settings.values import Side
from appliance.tunnel.limits.counters import Counters
from appliance.tunnel.model.servers import Server
from tests.support.brokers import NOW, SEEN, WELL
from tests.support.tunnel import tunnel_settings

Samples = dict[tuple[str, ...], float]
Declarations = dict[str, tuple[str, str, frozenset[str]]]
"""The type, the help and the labels of each metric."""

NUMBERS = DestinationNumbers("", 5, Counter({Outcome.MAPPED: 3}), SEEN, {Fault.CREDENTIALS: 2})
WELL_NUMBERS = DestinationNumbers("", 5, Counter({Outcome.MAPPED: 3}), WELL, {})
"""The destination VM's numbers with a refused broker, and without."""


def source_vms(*faults: str) -> list[Server]:
    """A source VM that is well, and one with each of these faults."""
    vms = [Server(f"203.0.113.{7 + number}:15060", lambda: 0.5) for number in range(1 + len(faults))]
    vms[0].succeeded(NOW)
    for vm, fault in zip(vms[1:], faults, strict=True):
        vm.failed(Unreachable(fault), 0.0, 0.0, NOW)
    return vms


def tunnel_collector(
    counters: Counters, side: Side = Side.SOURCE, previous_secret: bool = True, peer: float | None = 90.5
) -> TunnelCollector:
    """The metrics of an end whose certificate is valid for 42.5 days, and the other one's for 90.5."""
    return TunnelCollector(side, tunnel_settings(), counters, lambda: Keys(42.5, previous_secret, peer))


def samples(text: str) -> Samples:
    """The samples of an end of the tunnel, by their name without our prefix and their label values.

    The values are in alphabetical order of the labels.
    """
    return {
        (sample.name.removeprefix("kafka_tunnel_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def declared(metrics: Iterable[Metric]) -> Declarations:
    """The metrics of a list."""
    return {metric.name: (metric.kind, metric.help, frozenset(metric.labels)) for metric in metrics}


def exported(text: str) -> Declarations:
    """The metrics of ours that have samples."""
    return {
        f"{family.name}_total" if family.type == Kind.COUNTER else family.name: (
            family.type,
            family.documentation,
            frozenset({label for sample in family.samples for label in sample.labels} - {"le"}),
        )
        for family in text_string_to_metric_families(text)
        if family.samples and family.name.startswith("kafka_")
    }
