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

import pytest

from appliance.replicator.spark.session import Spark
from appliance.replicator.spark.spark_jvm import spark_home, spark_jvm
from testbed.jars import java
from tests.support.engine import ENGINE
from tests.support.kept import kept
from tests.support.patience import PATIENCE

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
    return kept("spark-classes", "\n".join([version.stderr, spark_home(), *jars]), _record) / _ARCHIVE


def _record(directory: Path) -> None:
    environment = {**os.environ, _OPTIONS: f"-XX:ArchiveClassesAtExit={directory / _ARCHIVE} -Xlog:disable"}
    command = [sys.executable, "-m", "tests.support.spark_classes"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=PATIENCE)
    assert (directory / _ARCHIVE).exists()


async def _rehearse(directory: Path) -> None:
    """Run a job of two tasks."""
    async with spark_jvm(ENGINE, "rehearsal", directory / "setenv.sh", directory) as jvm:
        spark = await asyncio.to_thread(Spark, *await jvm.gateway(), ENGINE)
        context = spark._context
        await asyncio.to_thread(context.parallelize(range(2), 2).mapPartitionsWithIndex(lambda _, __: iter(())).collect)
        spark.let_go()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(_rehearse(Path(name)))
