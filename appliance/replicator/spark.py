"""Spark, and nothing but Spark: the one room that imports PySpark.

Spark places the tasks, starts them again when they fail, and brings back what they copied. Nothing that correctness
needs passes through it: a task that is tried twice is fenced by its own second try.
"""

import os
import sys
from importlib.resources import files

from pyspark import SparkConf, SparkContext

from appliance.replicator.portion import LedgerRow
from appliance.replicator.worker import ENV_FILE_VARIABLE, Invitation, work
from appliance.settings.values import EngineSettings

_TRIES = 4

_MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(64 * 1024 * 1024), "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024)}
"""glibc keeps the memory of a Fetch for the next one: to take it from the kernel anew is a tenth of the copying."""


def task_count(engine: EngineSettings) -> int:
    """How many tasks copy at once."""
    return engine.tasks or os.cpu_count() or 1


class Spark:
    """A running Spark application."""

    def __init__(self, engine: EngineSettings, name: str, env_file: str) -> None:
        """Start it: about three seconds, most of them the JVM's."""
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ[ENV_FILE_VARIABLE] = env_file
        os.environ.update(_MALLOC)
        self._context = SparkContext(conf=_configuration(engine, name))

    def slice(self, invitation: Invitation, tasks: int) -> list[LedgerRow]:
        """Run one slice and give its ledger; returns when all tasks have."""
        numbers = self._context.parallelize(range(tasks), tasks)
        rows: list[LedgerRow] = numbers.mapPartitions(lambda _: work(invitation)).collect()
        return rows

    def cancel(self) -> None:
        """End the slice by force: its Python workers are killed within seconds."""
        self._context.cancelAllJobs()

    def stop(self) -> None:
        """End the application."""
        self._context.stop()


def _configuration(engine: EngineSettings, name: str) -> SparkConf:
    log_file = files("appliance.replicator").joinpath("spark-log4j2.properties")
    conf = SparkConf().setAppName(name).setMaster(_master(engine))
    for key, value in {
        "spark.driver.memory": engine.spark_driver_memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_file}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A Python task costs 20 ms by it instead of 60.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.worker.reuse": "true",
    }.items():
        conf.set(key, value)
    if engine.spark_master.startswith("local"):
        conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    return conf


def _master(engine: EngineSettings) -> str:
    """Spark's master: local mode gets a slot more than it has tasks, and tries a failed task again."""
    if engine.spark_master == "local[*]":
        return f"local[{task_count(engine) + 1},{_TRIES}]"
    return engine.spark_master
