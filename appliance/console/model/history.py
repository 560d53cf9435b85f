"""The last hour of a link in numbers: bounded, and with holes where nothing was known."""

from collections import deque
from dataclasses import astuple, dataclass, fields
from statistics import median

from appliance.status.model.snapshot import Snapshot
from appliance.status.model.topic_status import largest, total

HOUR_MS = 3_600_000
_SAMPLES_MAX = HOUR_MS // 3_000
"""Snapshots come every 3 s at most."""


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
    """The samples of the last hour."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=_SAMPLES_MAX)
        self._counts: tuple[int, int | None, int | None] | None = None

    @property
    def newest(self) -> Sample | None:
        """The newest sample."""
        return self._samples[-1] if self._samples else None

    def add(self, snapshot: Snapshot) -> None:
        """Add a snapshot, and forget what is older than an hour, or of a clock that was set back since."""
        while self._samples and self._samples[-1].at > snapshot.at:
            self._samples.pop()
        self._samples.append(self._sample(snapshot))
        while self._samples[0].at < snapshot.at - HOUR_MS:
            self._samples.popleft()

    def columns(self) -> dict[str, list[float | None]]:
        """The samples as columns: times in seconds, and a list of each number."""
        names = [field.name for field in fields(Sample)]
        columns = [list(column) for column in zip(*map(astuple, self._samples), strict=True)] or [[] for _ in names]
        return {**dict(zip(names, columns, strict=True)), "at": [at / 1000 for at in columns[0]]}

    def _sample(self, snapshot: Snapshot) -> Sample:
        growing = [topic for topic in snapshot.topics if topic.active]
        latencies = [p.latency_ms for p in snapshot.partitions if p.latency_ms is not None]
        records, size = self._rates(snapshot)
        return Sample(
            snapshot.at,
            records,
            size,
            total(topic.lag_records for topic in growing),
            None if snapshot.source.unknown else largest(topic.lag_seconds for topic in growing),
            median(latencies) if latencies else None,
        )

    def _rates(self, snapshot: Snapshot) -> tuple[float | None, float | None]:
        """Records and bytes a second since the snapshot before, new topics with the others."""
        before = self._counts
        counts = (total(topic.copied for topic in snapshot.topics), total(topic.bytes for topic in snapshot.topics))
        self._counts = (snapshot.at, *counts)
        if before is None or snapshot.at <= before[0]:
            return None, None
        passed = (snapshot.at - before[0]) / 1000
        records, size = (
            None if now is None or then is None or now < then else (now - then) / passed
            for now, then in zip(counts, before[1:], strict=True)
        )
        return records, size
