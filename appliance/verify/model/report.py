"""The result of each partition, and the report of a verification: a table with remarks below it, or JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from appliance.listing import counted, number, totals
from appliance.logs.model.span import CopyState, Span
from appliance.tables import Table, Text, cell, table

EVERY_RECORD = "every record"
NEWEST_RECORDS = "newest record of each key"
_DIGEST_SHOWN = 16


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """One partition, or a whole topic where ``partition`` is None.

    ``records`` were compared and found equal; they lie within the spans, which are None when nothing was compared.
    ``behind`` counts the source's records past them, or its keys where ``compared`` is ``NEWEST_RECORDS``.
    ``differs_at`` is the source offset of the first difference, None also where only the destination has a record.
    ``failed_at`` is that of the last source record on which the link's SQL fails.
    """

    topic: str
    copy: str
    partition: int | None
    state: CopyState
    detail: str = ""
    compared: str = EVERY_RECORD
    records: int = 0
    source: Span | None = None
    destination: Span | None = None
    digest: str | None = None
    behind: int = 0
    differs_at: int | None = None
    failed_at: int | None = None

    @property
    def title(self) -> str:
        """The topic as it is shown; of a total order, whose topics have their clusters, both that were compared."""
        of_order = ":" in self.copy or not self.topic
        return " and ".join(filter(None, (self.topic, self.copy))) if of_order else self.topic

    @property
    def words(self) -> str:
        """The state as it is shown: ``behind by 40 records``."""
        if self.state is CopyState.BEHIND:
            return f"behind by {counted(self.behind, 'record' if self.compared == EVERY_RECORD else 'key')}"
        if self.state is CopyState.DIFFERS and self.differs_at is not None:
            return f"differs at source offset {number(self.differs_at)}"
        if self.state is CopyState.EQUAL_IN_PART and self.source is not None and self.compared == EVERY_RECORD:
            return f"equal from source offset {number(self.source.start)}"
        return self.state.value


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
        columns = ("topic", "partition", "state", "records", "source offsets", "destination offsets", "digest")
        title = f"{self.source} and {self.destination}, {self.ended}"
        hide = ("digest", "destination offsets", "source offsets", "records")
        return table(columns, map(_cells, self.verdicts), title=title, right=("records",), hide=hide)

    def remarks(self) -> Iterable[str]:
        """The totals, and the details that do not fit in a row, a line each."""
        records = counted(sum(verdict.records for verdict in self.verdicts), "record")
        yield totals("result", (verdict.state for verdict in self.verdicts), f"{records} compared")
        for verdict in self.verdicts:
            if verdict.detail:
                partition = "" if verdict.partition is None else f"-{verdict.partition}"
                yield f"{verdict.title}{partition}: {verdict.detail}"
        compacted = {verdict.title for verdict in self.verdicts if verdict.compared == NEWEST_RECORDS}
        for topic in sorted(compacted):
            yield f"{topic}: it is compacted, so only the newest record of each key was compared"


def _cells(verdict: PartitionResult) -> list[Text]:
    texts = (
        verdict.title,
        "" if verdict.partition is None else str(verdict.partition),
        verdict.words,
        number(verdict.records),
        _span(verdict.source),
        _span(verdict.destination),
        (verdict.digest or "")[:_DIGEST_SHOWN],
    )
    return [cell(text, style="" if verdict.state.well else "bold red") for text in texts]


def _span(span: Span | None) -> str:
    return "" if span is None else f"{number(span.start)} to {number(span.end)}"
