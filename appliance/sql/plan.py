"""A statement as a plan over records: projections and filters alone, which keep the records' order.

Each SELECT of the statement is a *layer* of columns. Rows that mark the end of a range pass all of them: a condition
keeps them, and no expression is evaluated on them, because it might fail.

``transformed`` ends by the first record that the statement fails on, with Spark's reason. ``outcomes`` is for reports:
no row is dropped, and a record that the statement fails on ends nothing. ``contents`` is for a replicator: the same,
with the columns alone that are needed, because each costs Java's time. There each layer is one column::

    try_eval(if(<the layer below has not failed>, named_struct('row', if(<condition>, named_struct(...), NULL)), NULL))

Spark does not look into ``TryEval``, so that it neither moves a condition nor evaluates an expression twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from appliance.engine.model.ranges import ROOM_MAX
from appliance.sql.catalyst import SPARK_ERRORS, Catalyst, class_of, record_reason
from appliance.sql.checks import checked
from appliance.sql.model.statement import (
    COLUMNS,
    END,
    GROWN,
    HEADERS_TYPE,
    KEPT,
    LEFT_OUT,
    OPAQUE,
    OUTCOME,
    OUTPUTS,
    RANGE,
    ROOM,
    SALT,
    SESSION,
    TEXTS,
    TIMESTAMP,
    Statement,
)

_LAYER = "_layer"
_ATTRIBUTE = "AttributeReference"
_NAMED = _ATTRIBUTE, "UnresolvedAttribute"

_GROWN = "_grown"
_OUTCOME = f"if(spark_partition_id() < 0, NULL, coalesce({END}, if({_GROWN}, {GROWN}, CAST(%s AS BIGINT))))"
"""It is PASSES for true, and LEFT_OUT for false. The first condition is never true: Spark moves no filter below a
column that needs the partition, while it would otherwise compute the layers for the filter, and once more for the rest.
"""

_BYTES = "coalesce(octet_length(%s), 0)"
_HEADER_BYTES = (
    "coalesce(aggregate(%s, 0L, (n, h) -> n + 32 + octet_length(h.key) + coalesce(octet_length(h.value), 0)), 0)"
)

_HEADERS = f"""transform(
    coalesce(CAST(_x AS {HEADERS_TYPE}), CAST(array() AS {HEADERS_TYPE})),
    h -> if(h.key IS NULL, raise_error('a header has no key'), h))"""


def check(session: Any, statement: Statement, salted: bool) -> None:
    """Check a statement, for a link that has a salt or none, before there are records."""
    transformed(session, statement, _no_records(session, salted))


def _no_records(session: Any, salted: bool) -> Any:
    columns = {**COLUMNS, **({SALT: "STRING"} if salted else {})}
    return session.createDataFrame([], ", ".join(f"`{name}` {kind}" for name, kind in columns.items()))


def transformed(session: Any, statement: Statement, records: Any) -> Any:
    """The records as the statement makes them; those that it leaves out are absent, and the others stay in their order.

    One that it fails on ends the job, with Spark's reason. Rows that mark the end of a range are passed on.

    Args:
        session: the SparkSession.
        statement: the link's SQL.
        records: a DataFrame of ``COLUMNS``, and of ``SALT`` if the link has a salt.

    Returns:
        A DataFrame with the columns of ``records``, without ``SALT``.
    """
    layers = _Layers(session, statement, records)
    columns = layers.outputs()
    kept = [f"{columns.get(name, f'`{name}`')} AS `{name}`" for name in records.columns if name != SALT]
    return layers.frame().selectExpr(*kept)


def outcomes(session: Any, statement: Statement, records: Any) -> Any:
    """The same, but one row for each of ``records``, with the column ``KEPT``; a record that fails ends nothing, and
    neither does one that the statement makes larger than ``contents`` ever has room for.
    """
    layers = _Outcomes(session, statement, records)
    columns, last = layers.outputs(), layers.last
    grown = _grown(columns, [name for name in TEXTS if name in layers.used or name not in columns], str(ROOM_MAX))
    frame = layers.frame().selectExpr("*", f"{grown} AS {_GROWN}")

    def column(name: str) -> str:
        if name not in OUTPUTS or not last:
            return f"`{name}`"
        if name in columns:
            return f"if({last} IS NULL OR {_GROWN}, `{name}`, {columns[name]})"
        return f"if({last} IS NOT NULL AND {last}.row IS NULL, NULL, `{name}`)"

    chosen = [f"{column(name)} AS `{name}`" for name in records.columns if name != SALT]
    return frame.selectExpr(*chosen, f"if({_GROWN}, NULL, {layers.kept()}) AS {KEPT}")


@dataclass(frozen=True, slots=True)
class Needed:
    """The columns of the rows that ``contents`` needs, and of those that it returns, in their order."""

    given: tuple[str, ...]
    returned: tuple[str, ...]


def needed(session: Any, statement: Statement, salted: bool) -> Needed:
    """The columns that a statement's records need: no others pass Java."""
    layers = _Outcomes(session, statement, _no_records(session, salted))
    changed = layers.outputs()
    stays = [OPAQUE if name == "headers" else name for name in OUTPUTS if name not in changed]
    seen = [TEXTS.get(name, name) for name in COLUMNS if name in {"offset", "timestamp"} | layers.used | {*stays}]
    opaque = [OPAQUE] * (OPAQUE in stays)
    outputs = [OPAQUE if opaque and name == "headers" else TEXTS.get(name, name) for name in OUTPUTS]
    given = RANGE, *seen, *opaque, *[SALT] * salted, *[ROOM] * bool(changed), END
    return Needed(given, (RANGE, "offset", "timestamp", *outputs, OUTCOME))


def contents(session: Any, statement: Statement, records: Any, names: Sequence[str]) -> Any:
    """As ``outcomes``, with the columns ``names`` alone, and without the records that the statement leaves out.

    Key, value and headers of a record that it fails on, or that has no room for them, are null. ``records`` are a
    DataFrame of the columns that are ``needed``. A statement that saw another one would fail.
    """
    texts = {name: text for name, text in TEXTS.items() if text in records.columns}
    absent = {name: kind for name, kind in COLUMNS.items() if name not in {*records.columns, *texts}}
    guards = [f"CAST(raise_error('{name} is absent') AS {kind}) AS `{name}`" for name, kind in absent.items()]
    given = [f"`{name}`" for name in records.columns] + [
        f"CAST({text} AS BINARY) AS {name}" for name, text in texts.items()
    ]
    layers = _Outcomes(session, statement, records.selectExpr(*given, *guards), texts)
    columns, last = {TEXTS.get(name, name): column for name, column in layers.outputs().items()}, layers.last
    grown = _grown(columns, list(texts.values()))
    frame = layers.frame().selectExpr("*", f"{grown} AS {_GROWN}")

    def column(name: str) -> str:
        if name == OUTCOME:
            return _OUTCOME % layers.kept()
        if name not in ("headers", OPAQUE, *TEXTS.values()):
            return f"`{name}`"
        if name in columns:
            return f"if({_GROWN}, NULL, {columns[name]})"
        return f"if({last}.row IS NULL OR {_GROWN}, NULL, `{name}`)" if last else f"`{name}`"

    rows = frame.selectExpr(*(f"{column(name)} AS `{name}`" for name in names))
    return rows.filter(f"{OUTCOME} IS NULL OR {OUTCOME} <> {LEFT_OUT}")


def _grown(columns: Mapping[str, str], given: Sequence[str], room: str = ROOM) -> str:
    """SQL that is true where the outputs in ``columns`` are larger than key and value, if ``given``, and the room."""
    if not columns:
        return "false"
    after = [(_HEADER_BYTES if name == "headers" else _BYTES) % each for name, each in columns.items()]
    before = [_BYTES % f"`{name}`" for name in given]
    return f"{' + '.join(after)} > {' + '.join([*before, room])}"


def failure(session: Any, statement: Statement, record: Any) -> str:
    """The reason that the statement fails on a DataFrame of one record, in a line; empty if it does not."""
    try:
        transformed(session, statement, record).collect()
    except SPARK_ERRORS as error:
        return record_reason(error, statement.text + _HEADERS)
    return ""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A plan over ``rows``: an expression for each of its columns' ids, and conditions that no layer has applied."""

    columns: Mapping[int, Any]
    conditions: Sequence[Any] = ()


class _Layers:
    """The layers of a statement over its records: a column for each value, and a filter below it.

    ``texts`` are the columns that have key and value as strings too, by name; with them outputs are strings. ``last``
    names the newest layer, empty if the statement changes nothing. ``used`` are the columns that the layers see.
    """

    def __init__(
        self, session: Any, statement: Statement, records: Any, texts: Mapping[str, str] | None = None
    ) -> None:
        self._texts, self._kind = texts or {}, "BINARY" if texts is None else "STRING"
        for name, value in SESSION.items():
            session.conf.set(name, value)
        self._catalyst = Catalyst(session)
        checked_plan = checked(self._catalyst, statement, records)
        self._plan, self._base = checked_plan.plan, checked_plan.base
        self._records = records
        self._rows = records._jdf
        self._count = 0
        self.last = ""
        self.used: set[str] = set()

    def frame(self) -> Any:
        """The records with the columns of the layers."""
        return type(self._records)(self._rows, self._records.sparkSession)

    def outputs(self) -> dict[str, str]:
        """Add all layers; returns the column, as SQL, of each output that the statement changes."""
        is_project = class_of(self._plan) == "Project"
        below = self._read(self._catalyst.children(self._plan)[0] if is_project else self._plan)
        given = self._catalyst.items(self._plan.projectList() if is_project else self._plan.output())
        values = {each.name().lower(): self._bound(_value(each), below) for each in given}
        own = {attribute.exprId().id(): attribute.name() for attribute in self._catalyst.items(self._base.output())}
        cast = f"CAST(_x AS {self._kind})"
        changed = {
            name: self._catalyst.expression(_HEADERS if name == "headers" else cast, {"_x": value})
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

    def _project(self, given: Sequence[Any], below: _Reading) -> _Reading:
        columns = {each.exprId().id(): self._bound(_value(each), below) for each in given}
        computed = [number for number, value in columns.items() if class_of(value) != _ATTRIBUTE]
        if not computed:
            return _Reading(columns, below.conditions)
        names = self._layer(below.conditions, [columns[number] for number in computed])
        made = {number: self._catalyst.expression(name, {}) for number, name in zip(computed, names, strict=True)}
        return _Reading(columns | made)

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

    def _add(self, _: str, conditions: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
        if conditions:
            keep = self._catalyst.expression(f"{END} IS NOT NULL OR ({' AND '.join(conditions)})", conditions)
            self._rows = self._rows.filter(self._catalyst.column(keep))
        names = [f"{self.last}{name}" for name in values]
        for name, (part, value) in zip(names, values.items(), strict=True):
            self._with(name, self._catalyst.expression(f"if({END} IS NULL, {part}, NULL)", {part: value}))
        return names

    def _with(self, name: str, expression: Any) -> None:
        self._rows = self._rows.withColumn(name, self._catalyst.column(expression))


class _Outcomes(_Layers):
    """Layers without filters, each one column: null if it fails, ``row`` null in it if it leaves the record out."""

    def kept(self) -> str:
        """``KEPT``, as SQL."""
        last = self.last
        return f"if({last} IS NULL, NULL, {last}.row IS NOT NULL)" if last else f"if({END} IS NULL, true, NULL)"

    def _add(self, before: str, conditions: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
        passed = f"{before} IS NOT NULL" if before else f"{END} IS NULL"
        when = " AND ".join([f"{before}.row IS NOT NULL"] * bool(before) + list(conditions)) or "true"
        fields = ", ".join(f"'{name}', {name}" for name in values)
        row = f"named_struct({fields})" if values else "true"
        text = f"if({passed}, named_struct('row', if({when}, {row}, NULL)), NULL)"
        layer = self._catalyst.expression(text, {**conditions, **values})
        self._with(self.last, self._catalyst.expression_class("TryEval")(layer))
        return [f"{self.last}.row.{name}" for name in values]


def _value(named: Any) -> Any:
    return named.child() if class_of(named) == "Alias" else named
