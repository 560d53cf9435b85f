"""The metrics of an end of the tunnel as Prometheus reads them."""

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, ...], float]


def samples(text: str) -> Samples:
    """The samples by name, without our prefix, and the values of their labels, which are in alphabetical order."""
    return {
        (sample.name.removeprefix("kafka_tunnel_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
