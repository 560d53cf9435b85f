"""The view of an order as JSON and for a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import groupby
from typing import Any

from appliance.link.model.naming import ORDER
from appliance.link.model.order import Epoch
from appliance.listing import counted, number, totals
from appliance.order.model.view import ClusterView, LaneView, OrderView, PartitionView, PartView
from appliance.tables import Group, RenderableType, Table, cell, html, table
from appliance.timestamps import utc

_UNKNOWN = "unknown"
_ROWS_MAX = 40


def document(view: OrderView) -> dict[str, Any]:
    """The JSON object: all fields of the view, null where unknown, times as ISO 8601."""
    problems = [
        {"subject": each.subject, "reason": each.reason, "remedies": list(each.remedies)} for each in view.problems
    ]
    return {"order": ORDER, "state": view.state, **_json(view), "problems": problems}


def _json(value: Any) -> Any:
    if isinstance(value, Epoch):
        return {"number": value.number, "home": value.home} if value.number else None
    if is_dataclass(value):
        return {each.name: _of(each.name, getattr(value, each.name)) for each in fields(value)}
    return [*map(_json, value)] if isinstance(value, tuple) else value


def _of(name: str, value: Any) -> Any:
    return utc(value / 1000) if name in ("at", "since", "heard") and value is not None else _json(value)


def rendered(view: OrderView) -> Group:
    """The text to print; of partitions only those that are not everywhere, and not all of many: JSON has them."""
    return Group(*_parts(view))


def page(view: OrderView | None, *, fresh: bool) -> str:
    """The same text as a page of HTML, which says if it is not ``fresh``."""
    old = [] if fresh else [cell("no new look at the clusters", style="bold red")]
    return html(ORDER, *old, *(_parts(view) if view else ()))


def _parts(view: OrderView) -> Iterator[RenderableType]:
    yield cell(f"{ORDER}: {view.state} at {utc(view.at / 1000)}", style="bold" if view.state.well else "bold red")
    yield from map(cell, _homes(view))
    yield _clusters(view)
    rows = [(each, part) for each in view.partitions for part in each.parts if part.lacks != 0 or part.stopped]
    if rows:
        yield _partitions(rows[:_ROWS_MAX])
    if len(rows) > _ROWS_MAX:
        yield cell(f"... and {number(len(rows) - _ROWS_MAX)} rows more: --json shows everything")
    yield cell(totals("partition", map(_state, view.partitions), f"lacks {_lacks(view)}"))
    for problem in view.problems:
        commands = (f"  `{command}`" for command in problem.remedies)
        yield cell(f"{problem.subject}: {problem.reason}", *commands, style="red")


def _homes(view: OrderView) -> Iterator[str]:
    """The home of each lane; consecutive lanes with the same epoch together."""
    for epoch, group in groupby(view.lanes, key=_epoch):
        lanes = list(group)
        first, last = lanes[0], lanes[-1]
        which = f"lane {first.lane}" if first is last else f"lanes {first.lane} to {last.lane}"
        if epoch is None:
            yield f"{which}: no cluster that was read has promised anything"
            continue
        times = [each.since for each in lanes]
        since = _UNKNOWN if None in times else utc(max(time for time in times if time is not None) / 1000)
        before = f", after epoch {first.before}" if first.before else ""
        cause = f"; {first.cause}" if first.cause else ""
        lost = f" that {', '.join(first.lost)} is lost" if first.lost else ""
        members = ", ".join(first.members)
        yield f"{which}: home is {epoch.home}, epoch {epoch} since {since}{before}, of {members}{cause}{lost}"


def _epoch(lane: LaneView) -> Epoch | None:
    return lane.epoch


def _clusters(view: OrderView) -> Table:
    """A row for each cluster, with the sums of its partitions."""
    numbers = ("records", "lacks", "not shown", "to take")
    rows = (_cluster(view, each) for each in view.clusters)
    hide = ("promised", "partitions accepted", "not shown", "to take", "records")
    return table(("cluster", "promised", "partitions accepted", *numbers, "state"), rows, right=numbers, hide=hide)


def _cluster(view: OrderView, cluster: ClusterView) -> tuple[str, ...]:
    if cluster.unknown:
        return (cluster.id, *[_UNKNOWN] * 6, "unknown now")
    parts = [(each, part) for each in view.partitions for part in each.parts if part.cluster == cluster.id]
    accepted = sum(part.accepted == view.lanes[each.lane].epoch for each, part in parts)
    origins = [o.backlog for each in view.partitions for o in each.origins if o.cluster == cluster.id]
    stopped, alone = sum(bool(part.stopped) for _, part in parts), any(part.alone for _, part in parts)
    words = f"{number(stopped)} stopped" if stopped else "alone" if alone else "answers"
    words = f"silent for {view.silent[cluster.id]} s" if cluster.id in view.silent else words
    words += f", {counted(cluster.gaps, 'gap')}" if cluster.gaps else ""
    if cluster.standbys:
        words += f"; {cluster.active or 'nobody'} writes, {', '.join(cluster.standbys)} stands by"
    homes = [part.unshown for _, part in parts if part.unshown is not None]
    return (
        cluster.id,
        str(cluster.promised or "none"),
        f"{number(accepted)} of {number(len(view.partitions))}",
        number(sum(part.rank for _, part in parts)),
        _sum([part.lacks for _, part in parts]),
        _sum(homes) if homes else "",
        _sum(origins),
        words,
    )


def _partitions(rows: list[tuple[PartitionView, PartView]]) -> Table:
    numbers = ("records", "of", "lacks")
    shown = (
        (
            str(each),
            part.cluster,
            str(part.accepted),
            number(part.rank),
            _sum([each.length]),
            _sum([part.lacks]),
            "stopped" if part.stopped else "no home" if each.open is False else "",
        )
        for each, part in rows
    )
    hide = ("accepted", "of", "records")
    return table(("partition", "cluster", "accepted", *numbers, "state"), shown, right=numbers, hide=hide)


def _state(partition: PartitionView) -> str:
    """A partition in a few words; the worst of its clusters counts."""
    if any(part.stopped for part in partition.parts):
        return "stopped"
    lacks = {part.lacks for part in partition.parts}
    return _UNKNOWN if None in lacks else "complete" if lacks <= {0} else "not complete"


def _lacks(view: OrderView) -> str:
    return _sum([part.lacks for each in view.partitions for part in each.parts])


def _sum(numbers: Sequence[int | None]) -> str:
    known = [number for number in numbers if number is not None]
    return number(sum(known)) if len(known) == len(numbers) else _UNKNOWN
