"""The result of the demo, as a short table or as one JSON object."""

import dataclasses
import json
from dataclasses import dataclass

from appliance.tables import Table, table
from testbed.comparison import Differences


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The result of one run.

    ``records`` and ``bytes`` (of keys, values and headers) are those of the source. ``records_per_second`` is the rate
    of the copy after the restart, while all of the second half waits at the source. It is measured from the first to
    the last record that reaches a consumer of the destination, so it excludes the start of Spark and the time without a
    replicator. ``seconds`` is the whole run, from the start of the clusters to the end of the comparison. Latencies are
    those of a quiet link, see ``latency``.
    """

    records: int
    bytes: int
    restarts: int
    records_per_second: float
    latency_p50_ms: float
    latency_p99_ms: float
    seconds: float
    differences: Differences
    unasked: tuple[str, ...] = ()
    """Topics at the destination that are neither copies nor the link's own."""

    @property
    def clean(self) -> bool:
        """True when both sides are equal."""
        return not self.differences and not self.unasked

    def complaints(self) -> list[str]:
        """The differences, a line each; the first few records only."""
        lines = [str(example) for example in self.differences.examples]
        return lines + [f"topic {topic} is not one of the link's" for topic in self.unasked]

    def as_json(self) -> str:
        """One JSON object, on one line."""
        counts = dataclasses.asdict(self.differences)
        return json.dumps(
            {
                "records": self.records,
                "bytes": self.bytes,
                **{kind: counts[kind] for kind in ("lost", "duplicated", "reordered", "altered")},
                "restarts": self.restarts,
                "records_per_second": round(self.records_per_second),
                "latency_p50_ms": round(self.latency_p50_ms, 1),
                "latency_p99_ms": round(self.latency_p99_ms, 1),
                "seconds": round(self.seconds, 1),
            }
        )

    def as_table(self) -> Table:
        """A table for people."""
        title = "exactly once" if self.clean else "the copies differ from their source"
        return table(("measured", "figure"), self._rows(), title=title, right=("figure",), show_header=False)

    def _rows(self) -> list[tuple[str, str]]:
        found = self.differences
        return [
            ("records", f"{self.records:,}"),
            ("bytes", f"{self.bytes:,}"),
            *((kind, f"{getattr(found, kind):,}") for kind in ("lost", "duplicated", "reordered", "altered")),
            ("restarts after SIGKILL", f"{self.restarts}"),
            ("records/s", f"{self.records_per_second:,.0f}"),
            ("latency p50 / p99", f"{self.latency_p50_ms:.0f} / {self.latency_p99_ms:.0f} ms"),
            ("seconds", f"{self.seconds:.0f}"),
        ]
