"""A statement as a plan over records: projections and filters alone, which keep the records' order.

``outcomes`` is for reports: no row is dropped. ``contents`` is for a replicator: the same, with the columns alone that
are needed, because each costs Java's time, and without the records that the statement leaves out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from appliance.engine.model.ranges import ROOM_MAX
from appliance.sql.catalyst import SPARK_ERRORS, record_reason
from appliance.sql.layers import HEADERS, Layers
from appliance.sql.model.statement import (
    COLUMNS,
    END,
    GROWN,
    KEPT,
    LEFT_OUT,
    OPAQUE,
    OUTCOME,
    OUTPUTS,
    RANGE,
    ROOM,
    SALT,
    TEXTS,
    TYPES,
    Statement,
)

_GROWN = "_grown"
_OUTCOME = f"if(spark_partition_id() < 0, NULL, coalesce({END}, if({_GROWN}, {GROWN}, CAST(%s AS BIGINT))))"
"""It is PASSES for true, and LEFT_OUT for false. The first condition is never true: Spark moves no filter below a
column that needs the partition, while it would otherwise compute the layers for the filter, and once more for the rest.
"""

_BYTES = "coalesce(octet_length(%s), 0)"
_HEADER_BYTES = (
    "coalesce(aggregate(%s, 0L, (n, h) -> n + 32 + octet_length(h.key) + coalesce(octet_length(h.value), 0)), 0)"
)


def check(session: Any, statement: Statement, salted: bool) -> None:
    """Check a statement, for a link that has a salt or none, before there are records."""
    outcomes(session, statement, _no_records(session, salted))


def _no_records(session: Any, salted: bool) -> Any:
    columns = [*COLUMNS, SALT] if salted else COLUMNS
    return session.createDataFrame([], ", ".join(f"`{name}` {TYPES[name]}" for name in columns))


def outcomes(session: Any, statement: Statement, records: Any) -> Any:
    """The records as the statement makes them, in their order, each with the column ``KEPT``.

    One that it fails on, or makes larger than ``contents`` ever has room for, ends nothing. ``records`` are a DataFrame
    of ``COLUMNS``, and of ``SALT`` if the link has a salt; the result has the same columns, without ``SALT``.
    """
    layers = Layers(session, statement, records)
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

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def needed(session: Any, statement: Statement, salted: bool) -> Needed:
    """The columns that a statement's records need: no others pass Java."""
    layers = Layers(session, statement, _no_records(session, salted))
    changed = layers.outputs()
    stays = [OPAQUE if name == "headers" else name for name in OUTPUTS if name not in changed]
    seen = [TEXTS.get(name, name) for name in COLUMNS if name in {"offset", "timestamp"} | layers.used | {*stays}]
    opaque = [OPAQUE] * (OPAQUE in stays)
    outputs = [OPAQUE if opaque and name == "headers" else TEXTS.get(name, name) for name in OUTPUTS]
    inputs = RANGE, *seen, *opaque, *[SALT] * salted, *[ROOM] * bool(changed), END
    return Needed(inputs, (RANGE, "offset", "timestamp", *outputs, OUTCOME))


def contents(session: Any, statement: Statement, records: Any, names: Sequence[str]) -> Any:
    """As ``outcomes``, with the columns ``names`` alone, and without the records that the statement leaves out.

    Key, value and headers of a record that it fails on, or that has no room for them, are null. ``records`` are a
    DataFrame of the columns that are ``needed``. A statement that saw another one would fail.
    """
    texts = {name: text for name, text in TEXTS.items() if text in records.columns}
    absent = {name: kind for name, kind in COLUMNS.items() if name not in {*records.columns, *texts}}
    guards = [f"CAST(raise_error('{name} is absent') AS {kind}) AS `{name}`" for name, kind in absent.items()]
    columns_in = [f"`{name}`" for name in records.columns] + [
        f"CAST({text} AS BINARY) AS {name}" for name, text in texts.items()
    ]
    layers = Layers(session, statement, records.selectExpr(*columns_in, *guards), texts)
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


def _grown(columns: Mapping[str, str], inputs: Sequence[str], room: str = ROOM) -> str:
    """SQL that is true where the outputs in ``columns`` are larger than key and value, if ``given``, and the room."""
    if not columns:
        return "false"
    after = [(_HEADER_BYTES if name == "headers" else _BYTES) % each for name, each in columns.items()]
    before = [_BYTES % f"`{name}`" for name in inputs]
    return f"{' + '.join(after)} > {' + '.join([*before, room])}"


def failure(session: Any, statement: Statement, record: Any) -> str:
    """The reason that the statement fails on a DataFrame of one record, in a line; empty if it does not."""
    layers = Layers(session, statement, record, tries=False)
    columns = [*layers.outputs().values(), layers.kept()]
    try:
        layers.frame().selectExpr(*columns).collect()
    except SPARK_ERRORS as error:
        return record_reason(error, statement.text + HEADERS)
    return ""
