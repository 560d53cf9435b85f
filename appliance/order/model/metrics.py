"""The view of an order as Prometheus metrics. An unknown value has no sample, because a 0 would calm an alert."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from appliance.metrics import gauge
from appliance.order.model.view import OrderView, PartView

_OF_PARTS: Mapping[str, Callable[[PartView], float | None]] = {
    "kafka_order_records": lambda part: part.rank,
    "kafka_order_lacks_records": lambda part: part.lacks,
    "kafka_order_stopped": lambda part: part.stopped is not None,
    "kafka_order_alone": lambda part: part.alone is not None,
}


class OrderCollector(Collector):
    """The metrics of one view; ``silent`` says of each lane of this VM's process if its home is suspected."""

    def __init__(self, view: OrderView | None, silent: Mapping[int, bool], *, fresh: bool) -> None:
        self._view, self._silent, self._fresh = view, silent, fresh

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families; of a stale view only when it was taken."""
        view = self._view
        if view is None:
            return
        yield gauge("kafka_order_snapshot_timestamp_seconds", view.at / 1000)
        if self._fresh:
            yield from _families(_samples(view, self._silent))


def exposition(collector: OrderCollector) -> bytes:
    """The text that Prometheus scrapes."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)


def _families(samples: Iterator[tuple[str, tuple[str, ...], float | None]]) -> Iterator[Metric]:
    families: dict[str, GaugeMetricFamily] = {}
    for name, labels, value in samples:
        family = families.setdefault(name, gauge(name))
        if value is not None:
            family.add_metric(labels, value)
    yield from families.values()


def _samples(view: OrderView, silent: Mapping[int, bool]) -> Iterator[tuple[str, tuple[str, ...], float | None]]:
    for cluster in view.clusters:
        yield "kafka_order_cluster_reachable", (cluster.id,), not cluster.unknown
    for lane in view.lanes:
        number = (str(lane.lane),)
        if lane.epoch is not None:
            yield "kafka_order_epoch", number, lane.epoch.number
            yield "kafka_order_home", (*number, lane.epoch.home), 1
        yield "kafka_order_home_since_seconds", number, None if lane.since is None else lane.since / 1000
    for index, is_silent in silent.items():
        yield "kafka_order_home_silent", (str(index),), is_silent
    for each in view.partitions:
        yield "kafka_order_open", (each.topic, str(each.partition)), each.open
        for part in each.parts:
            for name, value in _OF_PARTS.items():
                yield name, (part.cluster, each.topic, str(each.partition)), value(part)
        for origin in each.origins:
            labels = (origin.cluster, each.topic, str(origin.partition))
            yield "kafka_order_backlog_offsets", labels, origin.backlog
