"""The report of a verification: a table with remarks below it, or JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from rich.table import Table

from appliance.verify.model.result import NEWEST_RECORDS, PartitionResult, Span

_DIGEST_SHOWN = 16


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The verdicts of one run; clusters by their ids, times as ISO 8601 in UTC."""

    source: str
    destination: str
    began: str
    ended: str
    verdicts: Sequence[PartitionResult]

    @property
    def well(self) -> bool:
        """True when every partition is equal, or equal in part."""
        return all(verdict.state.well for verdict in self.verdicts)

    def as_json(self) -> str:
        """The report as a JSON object; each partition has all fields of its ``Verdict``."""
        return json.dumps(
            {
                "source": self.source,
                "destination": self.destination,
                "began": self.began,
                "ended": self.ended,
                "equal": self.well,
                "records": sum(verdict.records for verdict in self.verdicts),
                "partitions": [asdict(verdict) for verdict in self.verdicts],
            },
            indent=2,
        )

    def as_table(self) -> Table:
        """A row for each verdict."""
        table = Table(title=f"{self.source} and {self.destination}, {self.ended}")
        for name in ("topic", "partition", "state"):
            table.add_column(name)
        table.add_column("records", justify="right")
        for name in ("source offsets", "destination offsets", "digest"):
            table.add_column(name)
        for verdict in self.verdicts:
            table.add_row(*_cells(verdict), style="" if verdict.state.well else "bold red")
        return table

    def remarks(self) -> Iterable[str]:
        """The details that do not fit in a row, a line each."""
        for verdict in self.verdicts:
            if verdict.detail:
                partition = "" if verdict.partition is None else f"-{verdict.partition}"
                yield f"{verdict.topic}{partition}: {verdict.detail}"
        compacted = {verdict.topic for verdict in self.verdicts if verdict.compared == NEWEST_RECORDS}
        for topic in sorted(compacted):
            yield f"{topic}: it is compacted, so only the newest record of each key was compared"


def _cells(verdict: PartitionResult) -> list[str]:
    return [
        verdict.topic,
        "" if verdict.partition is None else str(verdict.partition),
        verdict.words,
        f"{verdict.records:,}",
        _span(verdict.source),
        _span(verdict.destination),
        (verdict.digest or "")[:_DIGEST_SHOWN],
    ]


def _span(span: Span | None) -> str:
    return "" if span is None else f"{span.start} to {span.end}"
