"""The templates of the pages, and how they show states, numbers and times."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from appliance.console.model import text
from appliance.console.model.tables import Query
from appliance.output import printable
from appliance.program import quoted
from appliance.status.model.messages import utc
from appliance.status.model.snapshot import LinkState
from appliance.status.model.state_words import partition_state, topic_state
from appliance.timestamps import clock
from appliance.version import VERSION

_LOOKS = {
    "good": ("✓", {"copied", "synced", "passed", "active"}),
    "busy": ("↻", {"copying", "behind", "consumed at the destination", "further at the destination"}),
    "bad": ("✕", {"stopped", "failing", "nothing matches", "refused", "failed", "consumed on both sides"}),
    "warn": ("!", {"held", "warning", "failing over", "failing back", "resetting"}),
}


def _looks(state: str) -> dict[str, str]:
    """The look of a state: a sign beside the word, so that nobody depends on colours."""
    for kind, (sign, states) in _LOOKS.items():
        if state in states:
            return {"kind": kind, "sign": sign}
    return {"kind": "off", "sign": "?" if state == LinkState.UNKNOWN else "○"}


def _query(query: Query) -> str:
    values = {"text": query.text, "state": query.state, "sort": query.sort, "page": str(query.page)}
    plain = Query()
    changed = {name: value for name, value in values.items() if name == "sort" or value != str(getattr(plain, name))}
    return urlencode(changed | ({"down": "1"} if query.down else {}))


def _sorted_by(query: Query, column: str) -> str:
    return _query(replace(query, sort=column, down=query.sort == column and not query.down, page=1))


def _spark(points: Sequence[float | None]) -> str:
    """The path of a small chart, 60 wide and 18 high; a known point beside unknown ones is a dot."""
    top, path, before = max([1.0, *(each for each in points if each is not None)]), "", None
    for x, point in enumerate(points):
        if point is not None:
            path += f"{'M' if before is None else 'L'}{x} {17 - 16 * point / top:.1f}{'h0' if before is None else ''}"
        before = point
    return path


def filled(template: str, /, **values: Any) -> str:
    """A template's text with its values filled in."""
    return _ENVIRONMENT.get_template(template).render(version=VERSION, **values)


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    autoescape=True,
    # Our own HTML is no str alone.
    finalize=lambda value: printable(value, "\n\t") if type(value) is str else value,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.globals["looks"] = _looks
_ENVIRONMENT.filters |= {
    "count": text.count,
    "size": text.size,
    "span": text.span,
    "milliseconds": text.milliseconds,
    "utc": utc,
    "clock": clock,
    "sorted_by": _sorted_by,
    "spark": _spark,
    "quoted": quoted,
    "on_page": lambda query, page: _query(replace(query, page=page)),
    "topic_state": topic_state,
    "partition_state": partition_state,
}
