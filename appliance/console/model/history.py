"""A link in numbers: the last hour in fine steps and the last day in coarse ones, of bounded size.

Of many topics and partitions those have curves that are stopped, or are furthest behind, now or in the last day.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from statistics import median
from typing import Any

from appliance.console.model.rings import Numbers, Rings, Subject, rates
from appliance.status.model.snapshot import Snapshot
from appliance.status.model.topic_status import largest, total

TOPICS_MAX, PARTITIONS_MAX = 100, 200
"""Topics and partitions that have curves."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The link at one time, in milliseconds since 1970; None is unknown.

    ``records`` and ``bytes`` are a second's. ``lag_seconds`` is that of the partition furthest behind, ``latency_ms``
    the median of the partitions that copied something.
    """

    at: int
    records: float | None
    bytes: float | None
    lag_records: int | None
    lag_seconds: float | None
    latency_ms: float | None


class History:
    """The rings of the link and of its worst topics and partitions."""

    def __init__(self) -> None:
        self.rings = {"hour": Rings(10_000, 360), "day": Rings(300_000, 288)}
        self.newest: Sample | None = None
        self.left_out = (0, 0)
        """The numbers of topics and of partitions that have no curves."""
        self._counts: tuple[int, int | None, int | None] | None = None
        self.keep([])

    @property
    def arrays(self) -> "list[array[Any]]":
        """All numbers, in an order that the subjects give."""
        own: list[list[array[Any]]] = [[rings.at, *rings.of.values()] for rings in self.rings.values()]
        return [*chain(*own)]

    def keep(self, subjects: Iterable[Subject]) -> None:
        """Have curves of the link and these subjects alone."""
        kept = [Subject(), *subjects]
        for rings in self.rings.values():
            rings.keep(kept)

    def add(self, snapshot: Snapshot) -> None:
        """Add a snapshot."""
        sample, counts = self._sample(snapshot)
        values: dict[Subject, Numbers] = {
            Subject(): (sample.lag_records, *counts, sample.lag_seconds, sample.latency_ms),
            **{Subject(topic.name): (topic.lag_records, topic.copied) for topic in snapshot.topics},
            **{Subject(p.topic, p.partition): (p.lag_records, p.copied) for p in snapshot.partitions},
        }
        hour = self.rings["hour"]
        has_turned = self.newest is None or self.newest.at // hour.step != snapshot.at // hour.step
        if has_turned and snapshot.topics:  # none are known while no cluster answers
            self._choose(snapshot, values)
        for rings in self.rings.values():
            rings.add(snapshot.at, values)
        self.newest = sample

    def _choose(self, snapshot: Snapshot, values: Mapping[Subject, Numbers]) -> None:
        """Choose the subjects that have curves. One that has a curve goes before another that is as bad."""
        day = self.rings["day"]
        stops = {(p.topic, number) for p in snapshot.partitions if p.stopped for number in (p.partition, -1)}
        stops |= {(topic.name, -1) for topic in snapshot.topics if topic.stopped}

        def badness(one: Subject) -> tuple[bool, float, bool]:
            return one in stops, max(values[one][0] or 0, day.peak(one)), one in day.of

        worst = sorted((one for one in values if one.topic), key=badness, reverse=True)
        topics, partitions = ([one for one in worst if (one.partition < 0) is whole] for whole in (True, False))
        self.left_out = max(0, len(topics) - TOPICS_MAX), max(0, len(partitions) - PARTITIONS_MAX)
        self.keep([*topics[:TOPICS_MAX], *partitions[:PARTITIONS_MAX]])

    def _sample(self, snapshot: Snapshot) -> tuple[Sample, tuple[int | None, int | None]]:
        """The sample, and the counts of records and bytes behind it, new topics with the others."""
        growing = [topic for topic in snapshot.topics if topic.active]
        latencies = [p.latency_ms for p in snapshot.partitions if p.latency_ms is not None]
        counts = (total(topic.copied for topic in snapshot.topics), total(topic.bytes for topic in snapshot.topics))
        before, self._counts = self._counts or (snapshot.at, None, None), (snapshot.at, *counts)
        records, size = (rates([before[0], snapshot.at], pair)[1] for pair in zip(before[1:], counts, strict=True))
        sample = Sample(
            snapshot.at,
            records,
            size,
            total(topic.lag_records for topic in growing),
            None if snapshot.source.unknown else largest(topic.lag_seconds for topic in growing),
            median(latencies) if latencies else None,
        )
        return sample, counts
