"""The metrics of an end of the tunnel, as Prometheus reads them."""

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, ...], float]


def samples(text: str) -> Samples:
    """The samples by their name without our prefix, and their label values, in alphabetical order of the labels."""
    return {
        (sample.name.removeprefix("kafka_tunnel_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
