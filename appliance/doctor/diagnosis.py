"""The report of a diagnosis: a table with the remedies below it, or JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from appliance.doctor.step import Result, Verdict
from appliance.tables import Table, Text, cell, table

_STYLES = {
    Verdict.PASSED: "green",
    Verdict.WARNING: "bold yellow",
    Verdict.FAILED: "bold red",
    Verdict.SKIPPED: "dim",
    Verdict.NOT_REACHED: "dim",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The results of all steps on one VM; ``began`` is ISO 8601 in UTC."""

    side: str
    began: str
    results: Sequence[Result]

    @property
    def well(self) -> bool:
        """True when no step has failed."""
        return not any(result.finding.verdict.blocks for result in self.results)

    def as_json(self) -> str:
        """The diagnosis as a JSON object."""
        steps = [
            {
                "step": result.name,
                "verdict": result.finding.verdict,
                "seconds": round(result.seconds, 3),
                "detail": result.finding.detail,
                "change": result.finding.remedy or None,
            }
            for result in self.results
        ]
        return json.dumps({"side": self.side, "began": self.began, "well": self.well, "steps": steps}, indent=2)

    def as_table(self) -> Table:
        """A row for each step."""
        title = f"{self.side} VM, {self.began}"
        columns, right = ("step", "verdict", "seconds", "seen"), ("seconds",)
        return table(columns, map(_row, self.results), title=title, right=right, hide=right)

    def remarks(self) -> Iterator[Text]:
        """The changes that are needed, a line for each step, and a summary."""
        for result in self.results:
            if result.finding.remedy:
                lines = f"{result.name}: {result.finding.remedy}".split("\n")
                yield cell(*lines, style=_STYLES[result.finding.verdict])
        broken = [result.name for result in self.results if result.finding.verdict is Verdict.FAILED]
        yield cell(f"the path fails at: {', '.join(broken)}" if broken else "the path works")


def _row(result: Result) -> Sequence[str | Text]:
    finding = result.finding
    seconds = "" if finding.verdict is Verdict.NOT_REACHED else f"{result.seconds:.2f}"
    verdict = cell(finding.verdict, style=_STYLES[finding.verdict])
    return result.name, verdict, seconds, cell(*finding.detail.split("\n"))
