"""The layers of a statement over its records: each SELECT adds a column to the rows, and drops none of them.

A layer is null if it fails, and ``row`` is null in it if it leaves the record out::

    try_eval(if(<the layer below has not failed>, named_struct('row', if(<condition>, named_struct(...), NULL)), NULL))

Spark does not look into ``TryEval``, so that it neither moves a condition nor evaluates an expression twice. No
expression is evaluated on rows that mark the end of a range, because it might fail.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from appliance.sql.catalyst import CATALYST, Catalyst, class_of
from appliance.sql.checks import checked
from appliance.sql.model.statement import END, HEADERS_TYPE, OUTPUTS, SESSION, TIMESTAMP, Statement

_LAYER = "_layer"
_ATTRIBUTE = "AttributeReference"
_NAMED = _ATTRIBUTE, "UnresolvedAttribute"

HEADERS = f"""transform(
    coalesce(CAST(_x AS {HEADERS_TYPE}), CAST(array() AS {HEADERS_TYPE})),
    h -> if(h.key IS NULL, raise_error('a header has no key'), h))"""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A plan over ``rows``: an expression for each of its columns' ids, and conditions that no layer has applied."""

    columns: Mapping[int, Any]
    conditions: Sequence[Any] = ()


class Layers:
    """The layers of a statement over its records.

    ``texts`` are the columns that have key and value as strings too, by name; with them outputs are strings. ``last``
    names the newest layer, empty if the statement changes nothing. ``used`` are the columns that the layers see. Unless
    it ``tries``, a record that the statement fails on ends the job.
    """

    def __init__(
        self,
        session: Any,
        statement: Statement,
        records: Any,
        texts: Mapping[str, str] | None = None,
        *,
        tries: bool = True,
    ) -> None:
        self._texts, self._kind, self._tries = texts or {}, "BINARY" if texts is None else "STRING", tries
        for name, value in SESSION.items():
            session.conf.set(name, value)
        self._catalyst = Catalyst(session)
        self._plan, self._base = checked(self._catalyst, statement, records)
        self._records = records
        self._rows = records._jdf
        self._count = 0
        self.last = ""
        self.used: set[str] = set()

    def frame(self) -> Any:
        """The records with the columns of the layers."""
        return type(self._records)(self._rows, self._records.sparkSession)

    def kept(self) -> str:
        """``KEPT``, as SQL."""
        last = self.last
        return f"if({last} IS NULL, NULL, {last}.row IS NOT NULL)" if last else f"if({END} IS NULL, true, NULL)"

    def outputs(self) -> dict[str, str]:
        """Add all layers; returns the column, as SQL, of each output that the statement changes."""
        is_project = class_of(self._plan) == "Project"
        below = self._read(self._catalyst.children(self._plan)[0] if is_project else self._plan)
        named = self._catalyst.items(self._plan.projectList() if is_project else self._plan.output())
        values = {each.name().lower(): self._bound(_value(each), below) for each in named}
        own = {attribute.exprId().id(): attribute.name() for attribute in self._catalyst.items(self._base.output())}
        cast = f"CAST(_x AS {self._kind})"
        changed = {
            name: self._catalyst.expression(HEADERS if name == "headers" else cast, {"_x": value})
            for name, value in values.items()
            if name in OUTPUTS and not (class_of(value) == _ATTRIBUTE and own.get(value.exprId().id()) == name)
        }
        if not changed and not below.conditions:
            return {}
        return dict(zip(changed, self._layer(below.conditions, list(changed.values())), strict=True))

    def _read(self, plan: Any) -> _Reading:
        if plan.equals(self._base):
            timestamp = self._catalyst.expression(TIMESTAMP, {})
            own = {each.name(): each.exprId().id() for each in self._catalyst.items(plan.output())}
            return _Reading({own["timestamp"]: timestamp})
        (child,) = self._catalyst.children(plan)
        below = self._read(child)
        match class_of(plan):
            case "Filter":
                return _Reading(below.columns, [*below.conditions, self._bound(plan.condition(), below)])
            case "Project":
                return self._project(self._catalyst.items(plan.projectList()), below)
            case _:
                return below

    def _project(self, named: Sequence[Any], below: _Reading) -> _Reading:
        columns = {each.exprId().id(): self._bound(_value(each), below) for each in named}
        computed = [number for number, value in columns.items() if class_of(value) != _ATTRIBUTE]
        if not computed:
            return _Reading(columns, below.conditions)
        names = self._layer(below.conditions, [columns[number] for number in computed])
        below_names = {
            number: self._catalyst.expression(name, {}) for number, name in zip(computed, names, strict=True)
        }
        return _Reading(columns | below_names)

    def _bound(self, expression: Any, below: _Reading) -> Any:
        """The expression over the rows."""

        def known(node: Any) -> Any:
            return below.columns.get(node.exprId().id()) if class_of(node) == _ATTRIBUTE else None

        return self._catalyst.replaced(expression, known)

    def _layer(self, conditions: Sequence[Any], values: Sequence[Any]) -> list[str]:
        """Add a layer; returns the columns, as SQL, of its values."""
        conditions, values = (
            [self._catalyst.replaced(each, self._text) for each in some] for some in (conditions, values)
        )
        for node in (node for each in (*conditions, *values) for node in self._catalyst.below(each)):
            if class_of(node) in _NAMED:
                self.used.add(node.name().lower())
        self._count += 1
        before, self.last = self.last, f"{_LAYER}{self._count}"
        applied = {f"_condition{number}": condition for number, condition in enumerate(conditions)}
        return self._add(before, applied, {f"_c{number}": value for number, value in enumerate(values)})

    def _text(self, node: Any) -> Any:
        """The column with the same bytes as a string, for a key or a value that is cast to one; None for others.

        A string with a collation has another type: compared without it, it would be equal to fewer.
        """
        if class_of(node) != "Cast" or class_of(node.dataType()) != "StringType$":
            return None
        (child,) = self._catalyst.children(node)
        text = self._texts.get(child.name().lower()) if class_of(child) in _NAMED else None
        return self._catalyst.expression(text, {}) if text else None

    def _add(self, before: str, conditions: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
        passed = f"{before} IS NOT NULL" if before else f"{END} IS NULL"
        when = " AND ".join([f"{before}.row IS NOT NULL"] * bool(before) + list(conditions)) or "true"
        fields = ", ".join(f"'{name}', {name}" for name in values)
        row = f"named_struct({fields})" if values else "true"
        text = f"if({passed}, named_struct('row', if({when}, {row}, NULL)), NULL)"
        layer = self._catalyst.expression(text, {**conditions, **values})
        if self._tries:
            layer = self._catalyst.named(f"{CATALYST}.expressions.TryEval")(layer)
        self._rows = self._rows.withColumn(self.last, self._catalyst.column(layer))
        return [f"{self.last}.row.{name}" for name in values]


def _value(named: Any) -> Any:
    return named.child() if class_of(named) == "Alias" else named
