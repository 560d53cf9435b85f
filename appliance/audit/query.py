"""Queries of the audit table by Spark SQL, in a Spark of their own; nothing is written."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from appliance.audit.log import data_files
from appliance.audit.model.table import SCHEMA
from appliance.audit.store import store_of
from appliance.spark.session import Spark, Table

TABLE = "audit"

_SQL_TYPES = {"string": "STRING", "int32": "INT", "int64": "BIGINT", "timestamp[ms, tz=UTC]": "TIMESTAMP"}

Answer = tuple[Sequence[str], Iterator[Sequence[Any]]]
"""The columns of a result, and its rows."""


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
