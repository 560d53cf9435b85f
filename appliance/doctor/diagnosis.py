"""The report of a diagnosis: a table with the remedies below it, or JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from appliance.doctor.step import Result, Verdict
from appliance.settings.values import Side

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

    side: Side
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
        table = Table(title=f"{self.side} VM, {self.began}")
        for name in ("step", "verdict"):
            table.add_column(name)
        table.add_column("seconds", justify="right")
        table.add_column("seen", overflow="fold")
        for result in self.results:
            finding = result.finding
            seconds = "" if finding.verdict is Verdict.NOT_REACHED else f"{result.seconds:.2f}"
            verdict = Text(finding.verdict, _STYLES[finding.verdict])
            table.add_row(result.name, verdict, seconds, Text(_printable(finding.detail)))
        return table

    def remarks(self) -> Iterator[Text]:
        """The changes that are needed, a line for each step, and a summary."""
        for result in self.results:
            if result.finding.remedy:
                line = _printable(f"{result.name}: {result.finding.remedy}")
                yield Text(line, _STYLES[result.finding.verdict])
        broken = [result.name for result in self.results if result.finding.verdict is Verdict.FAILED]
        yield Text(f"the path fails at: {', '.join(broken)}" if broken else "the path works")


def _printable(text: str) -> str:
    """``text`` without control characters except line ends."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
