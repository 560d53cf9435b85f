"""A session of Spark SQL in the test's own process, and records as a statement sees them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from appliance.sql.model.statement import COLUMNS, SALT
from tests.support.spark_context import forget_context, hide_gateway

_QUIET = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.driver.bindAddress": "127.0.0.1"}

Headers = Sequence[tuple[str, bytes | None]]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A session whose JVM ends with the module's tests."""
    builder = SparkSession.builder.master("local[1]").config("spark.driver.host", "127.0.0.1")
    for name, value in _QUIET.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    gateway: Any = SparkContext._gateway
    hide_gateway()
    yield made
    made.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    forget_context()


class Row(NamedTuple):
    """A record, or the end of a range."""

    key: bytes | None = b"key"
    value: bytes | None = b"value"
    headers: Headers = ()
    topic: str = "orders"
    partition: int = 0
    offset: int = 0
    timestamp: int = 1_700_000_000_000
    timestamp_type: int = 0
    end: int | None = None


def end(offset: int) -> Row:
    """The row that marks the end of a range."""
    return Row(None, None, (), offset=offset, end=offset)


def records(session: SparkSession, rows: Sequence[Row], salt: str | None = None) -> DataFrame:
    """The rows as a DataFrame, in one partition."""
    schema = ", ".join(f"`{name}` {kind}" for name, kind in ({**COLUMNS, SALT: "STRING"}).items())
    values = [
        (
            row.topic,
            row.partition,
            row.offset,
            row.timestamp,
            row.timestamp_type,
            row.key,
            row.value,
            [tuple(header) for header in row.headers],
            row.end,
            salt,
        )
        for row in rows
    ]
    frame = session.createDataFrame(values, schema)
    return frame if salt is not None else frame.drop(SALT)
