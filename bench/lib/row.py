"""One measured figure beside its peer's."""

import dataclasses
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from appliance.tables import Table, table

LIMIT = "limit"
"""The peer's name if ``peer`` is a limit for our figure."""

_NO_SETUP: Mapping[str, str] = {}
_NO_GOALS: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True)
class Row:
    """Our figure and the peer's, in one ``unit``.

    ``peer_name`` names the source of ``peer``: another program, or ``LIMIT``. ``goal`` is the wanted ratio, if there is
    one.
    """

    name: str
    unit: str
    ours: float
    peer_name: str
    peer: float
    goal: float | None = None

    @property
    def ratio(self) -> float:
        """``ours / peer`` in any unit: higher is better for a rate, and lower is better for a cost.

        It is infinite if ``peer`` is 0, because an idle program may need no processor time within a short while. 0
        beside 0 is 1.
        """
        if self.ours == self.peer:
            return 1.0
        return self.ours / self.peer if self.peer else math.inf


def medians(
    name: str, unit: str, ours: str, figures: Mapping[str, Sequence[float]], goals: Mapping[str, float] = _NO_GOALS
) -> list[Row]:
    """The median of the figures of ``ours`` beside that of each other contender with figures."""
    middle = {who: statistics.median(each) for who, each in figures.items() if each}
    return [Row(name, unit, middle[ours], who, figure, goals.get(who)) for who, figure in middle.items() if who != ours]


def as_json(rows: Sequence[Row], setup: Mapping[str, str] = _NO_SETUP) -> str:
    """``{"rows": [{"name", "unit", "ours", "peer_name", "peer", "ratio", "goal"}], "setup": {}}``, for all
    benchmarks."""
    return json.dumps({"rows": [_fields(row) for row in rows], "setup": dict(setup)}, indent=2)


def from_json(text: str) -> list[Row]:
    """The rows that ``as_json`` wrote."""
    names = [field.name for field in dataclasses.fields(Row)]
    try:
        return [Row(**{name: row[name] for name in names}) for row in json.loads(text)["rows"]]
    except (KeyError, TypeError) as error:
        raise ValueError("these are no figures of a benchmark") from error


def as_table(rows: Sequence[Row]) -> Table:
    """The rows as a table."""
    return table(("measured", "ours", "peer", "ratio", "goal"), map(_cells, rows), hide=("goal",))


def _cells(row: Row) -> tuple[str, ...]:
    peer = f"{row.peer_name} {figure(row.peer)}"
    goal = "" if row.goal is None else figure(row.goal)
    return f"{row.name}, {row.unit}", figure(row.ours), peer, f"{row.ratio:.2f}", goal


def _fields(row: Row) -> dict[str, str | float | None]:
    return {
        "name": row.name,
        "unit": row.unit,
        "ours": round(row.ours, 3),
        "peer_name": row.peer_name,
        "peer": round(row.peer, 3),
        "ratio": round(row.ratio, 3),
        "goal": row.goal,
    }


def figure(value: float) -> str:
    """A readable number: a larger one has fewer decimals."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
