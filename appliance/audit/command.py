"""``appliance audit``: queries of the audit table."""

import argparse
import asyncio
import csv
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from appliance.audit.log import data_files
from appliance.audit.model.table import SCHEMA
from appliance.audit.store import store_of
from appliance.clock import utc_now
from appliance.errors import SettingsError
from appliance.listing import counted, number
from appliance.output import printable, say, say_json
from appliance.runtime.command import Command, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.spark.session import Spark, Table, local_spark
from appliance.tables import show, table
from appliance.timestamps import utc

TABLE = "audit"

_SQL_TYPES = {"string": "STRING", "int32": "INT", "int64": "BIGINT", "timestamp[ms, tz=UTC]": "TIMESTAMP"}

Answer = tuple[Sequence[str], Iterator[Sequence[Any]]]
"""The columns of a result, and its rows."""

_SHOWN = 10_000
"""Number of rows that a table shows: it needs all of them at once."""

_SUMMED = ("records", "bytes")
"""Columns whose sums are below a table."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    if not match:
        raise argparse.ArgumentTypeError("expected a number and s, m, h or d, such as 1h")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def _add_options(command: argparse.ArgumentParser) -> None:
    question = command.add_mutually_exclusive_group(required=True)
    question.add_argument("sql", nargs="?", metavar="SQL", help='a query of the table "audit", in Spark\'s SQL')
    question.add_argument("--last", type=_duration, metavar="TIME", help="the rows of the last 30m, 1h or 7d")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON object for each row, one a line")
    form.add_argument("--csv", action="store_true", help="print comma separated values, with a line of names")


def columns() -> str:
    """The table's columns, as in SQL's DDL; ``day`` is the name of a file's folder."""
    return ", ".join([*(f"`{field.name}` {_SQL_TYPES[str(field.type)]}" for field in SCHEMA), "`day` DATE"])


def query(spark: Spark, path: str, sql: str) -> Answer:
    """The result of a query."""
    files = [f"{path}/{each.name}" for each in data_files(store_of(path, spark.hadoop))]
    return spark.query(Table(TABLE, path, files, columns()), sql)


def newest(last: timedelta, now: datetime) -> str:
    """The query of the rows of the last hours or days."""
    since = (now - last).astimezone(UTC)
    at = since.strftime("%Y-%m-%d %H:%M:%S")
    return (
        "SELECT committed, topic, partition, kind, source_from, source_to, copy_from, copy_to, records, bytes, rebuilt,"
        f" transactions, lane, run, producer_epoch, cause FROM {TABLE} WHERE day >= DATE'{since:%Y-%m-%d}' AND"
        f" committed >= TIMESTAMP'{at}' ORDER BY committed, lane, positions_offset"
    )


async def _audit(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> None:
    if not settings.audit.path:
        raise SettingsError(
            ["AUDIT_PATH is empty: set it to a folder, and the replicator writes the audit table there"]
        )
    sql = parsed.sql if parsed.last is None else newest(parsed.last, utc_now())
    show = as_json if parsed.json else _as_csv if parsed.csv else _as_table
    async with local_spark(settings.engine, f"{settings.replicator}-audit", parsed.env_file.absolute()) as spark:
        await asyncio.to_thread(lambda: show(query(spark, settings.audit.path, sql)))


def as_json(answer: Answer) -> None:
    """Print an object for each row, one a line."""
    names, rows = answer
    for row in rows:
        say_json(json.dumps(dict(zip(names, map(_plain, row), strict=True))))


def _as_csv(answer: Answer) -> None:
    names, rows = answer
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([printable(_text(value)) for value in row] for row in rows)


def _as_table(answer: Answer) -> None:
    names, rows = answer
    shown = list(itertools.islice(rows, _SHOWN + 1))
    right = {name for number, name in enumerate(names) if _are_numbers(row[number] for row in shown)}
    cells = [[_text(value) for value in row] for row in shown[:_SHOWN]]
    show(table(names, cells, right=right, unbroken=names, hide=names[:0:-1], box=None, padding=(0, 2, 0, 0)))
    sums = [f"{number(sum(row[names.index(name)] for row in shown))} {name}" for name in _SUMMED if name in right]
    if len(shown) > _SHOWN:
        say(f"the first {number(_SHOWN)} rows are shown: use LIMIT, --json or --csv")
    else:
        say("; ".join([counted(len(shown), "row"), *sums]))


def _are_numbers(values: Iterable[Any]) -> bool:
    return any(isinstance(value, int | float | Decimal) for value in values)


def _text(value: Any) -> str:
    return "" if value is None else str(_plain(value))


def _plain(value: Any) -> Any:
    """A value as JSON and text have it; times in UTC."""
    if isinstance(value, datetime):
        return utc(value.timestamp())
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


AUDIT = Command(
    "Queries the audit table, what was copied when, by Spark SQL: a query of the table audit, with the columns of "
    "docs/run/audit.md, or the rows of the last hours with --last. Nothing is written. The replicator may run "
    "meanwhile.",
    with_settings(Role.REPLICATOR, _audit),
    _add_options,
)
