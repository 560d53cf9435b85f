"""One measured figure beside its peer's."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """Our figure and the peer's, in one ``unit``.

    ``peer_name`` says whose figure ``peer`` is: that of another program, or ``limit`` where ours is to stay below it.
    """

    name: str
    unit: str
    ours: float
    peer_name: str
    peer: float

    @property
    def ratio(self) -> float:
        """``ours / peer``, whatever the unit: the more the better for a rate, the less the better for a cost."""
        return self.ours / self.peer


def as_json(rows: Sequence[Row]) -> str:
    """``{"rows": [{"name", "unit", "ours", "peer_name", "peer", "ratio"}]}``, for every benchmark alike."""
    return json.dumps({"rows": [_fields(row) for row in rows]}, indent=2)


def as_table(rows: Sequence[Row]) -> Table:
    """The rows for people."""
    table = Table("measured", "ours", "peer", "ours / peer")
    for row in rows:
        peer = f"{row.peer_name} {_figure(row.peer)}"
        table.add_row(f"{row.name}, {row.unit}", _figure(row.ours), peer, f"{row.ratio:.2f}")
    return table


def _fields(row: Row) -> dict[str, str | float]:
    return {
        "name": row.name,
        "unit": row.unit,
        "ours": round(row.ours, 3),
        "peer_name": row.peer_name,
        "peer": round(row.peer, 3),
        "ratio": round(row.ratio, 3),
    }


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
