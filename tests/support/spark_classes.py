"""The classes of Spark's driver, parsed and verified once (JEP 350), so that it starts faster.

A driver that ends normally writes them to the user's cache, once for each Java and each PySpark.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from appliance.spark import spark_jvm
from appliance.spark.spark_jvm import spark_home
from testbed.jars import java
from testbed.kept import kept
from tests.support.patience import PATIENCE
from tests.support.sql import range_of, running_sql

_ARCHIVE = "classes.jsa"
_OPTIONS = "SPARK_SUBMIT_OPTS"


@pytest.fixture(scope="session", autouse=True)
def spark_classes() -> Iterator[None]:
    """Use the classes for every driver of a suite's tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(_OPTIONS, f"-XX:SharedArchiveFile={archive()} -Xlog:disable")
        yield


def archive() -> Path:
    """The archive of the classes. The first call on a machine runs a driver for it, which takes some seconds."""
    version = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True, timeout=PATIENCE)
    jars = sorted(path.name for path in Path(spark_home(), "jars").iterdir())
    return kept("spark-classes", "\n".join([version.stderr, spark_home(), "with SQL", *jars]), _record) / _ARCHIVE


def _record(directory: Path) -> None:
    environment = {**os.environ, _OPTIONS: f"-XX:ArchiveClassesAtExit={directory / _ARCHIVE} -Xlog:disable"}
    command = [sys.executable, "-m", "tests.support.spark_classes"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=5 * PATIENCE)
    assert (directory / _ARCHIVE).exists()


async def _rehearse(directory: Path) -> None:
    """Run a job of two tasks, and SQL in flight; Java writes the classes when it ends, which takes its time."""
    spark_jvm._STOP_PATIENCE = 5 * PATIENCE
    async with running_sql(directory, "SELECT key, string(int(string(value)) + 1) AS value FROM records") as sql:
        context: Any = SparkContext._active_spark_context
        await asyncio.to_thread(context.parallelize(range(2), 2).mapPartitionsWithIndex(lambda _, __: iter(())).collect)
        await sql.service.transform([range_of([b"1", b"none"])])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(_rehearse(Path(name)))
