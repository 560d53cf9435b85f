"""The result of the demo of an order, as a table or as one JSON object."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from appliance.tables import Table, table
from demo.order_verification import OrderCheck


@dataclass(frozen=True, slots=True)
class Change:
    """A change that happened, and the seconds that it took."""

    name: str
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class OrderReport:
    """The result of one run; ``produced`` are the records that producers have seen acknowledged in each cluster."""

    produced: Mapping[str, int]
    check: OrderCheck
    changes: Sequence[Change]
    seconds: float

    @property
    def clean(self) -> bool:
        """True when all T-global are equal, and have exactly what was produced."""
        return self.check.clean and self.check.written == self.produced

    def complaints(self) -> list[str]:
        """The differences, a line each; the first few records only."""
        return [str(example) for example in self.check.differences.examples]

    def as_json(self) -> str:
        """One JSON object, on one line."""
        found = self.check.differences
        return json.dumps(
            {
                "produced": {**self.produced},
                "t_global": self.check.shown,
                "chains": self.check.chains,
                "chains_equal": self.check.chains_equal,
                "missing": found.lost,
                "doubled": found.duplicated,
                "reordered": found.reordered,
                "altered": found.altered,
                "foreign": self.check.foreign,
                **{f"{change.name}_seconds": round(change.seconds, 1) for change in self.changes},
                "seconds": round(self.seconds, 1),
            }
        )

    def as_table(self) -> Table:
        """A table for people."""
        title = "one order" if self.clean else "the orders differ"
        return table(("measured", "figure"), self._rows(), title=title, right=("figure",), show_header=False)

    def _rows(self) -> list[tuple[str, str]]:
        found = self.check.differences
        numbers = (found.lost, found.duplicated, found.reordered, found.altered + self.check.foreign)
        names = ("missing", "doubled", "reordered", "altered")
        return [
            *((f"records of {name}", f"{count:,}") for name, count in self.produced.items()),
            *((f"records in T-global of {name}", f"{count:,}") for name, count in self.check.shown.items()),
            *((name, f"{number:,}") for name, number in zip(names, numbers, strict=True)),
            ("hash chains of all T-global", "equal" if self.check.chains_equal else "differ"),
            *((change.what, f"{change.seconds:.1f} s") for change in self.changes),
            ("seconds", f"{self.seconds:.0f}"),
        ]
