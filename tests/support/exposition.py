"""Metrics as Prometheus reads them."""

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from appliance.metrics import Kind, Metric

Samples = dict[tuple[str, ...], float]
Declarations = dict[str, tuple[str, str, frozenset[str]]]
"""The type, the help and the labels of each metric."""


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
