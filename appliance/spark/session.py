"""Spark, seen from the driver: only this, ``py4j_gateway`` and ``daemon`` import PySpark.

Spark places the tasks and restarts them when they fail. Correctness does not depend on it: the second try of a task
fences the first.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, TaskContext
from pyspark.errors import PySparkException
from pyspark.util import _load_from_socket

from appliance.clock import monotonic
from appliance.errors import ProcessFailed, SqlRefused
from appliance.settings.values import EngineSettings
from appliance.spark.configuration import XML_FETCHES, Application, slots_each
from appliance.spark.py4j_gateway import closed_gateway
from appliance.spark.spark_jvm import LOOPBACK, spark_jvm
from appliance.spark.tempdir import tempdir

_SPARK_ERRORS = (Py4JError, PySparkException)
"""A context with a session of SQL raises many of Java's errors as PySpark's own."""

_EXECUTORS_PATIENCE = 10.0
_POLL = 0.05


class Table(NamedTuple):
    """Parquet files below a folder as a table of this name; ``columns`` are as in SQL's DDL."""

    name: str
    folder: str
    files: Sequence[str]
    columns: str


class Spark:
    """A running Spark application, which ends with its JVM."""

    def __init__(
        self,
        port: int,
        secret: str,
        engine: EngineSettings,
        submitted: Mapping[str, str] | None = None,
        *,
        transforms: bool = False,
        jobs: int = 0,
    ) -> None:
        """Start it: takes about a second, and the time of a cluster's executors.

        ``submitted`` are the settings to add in a JVM that ``spark-submit`` has started, None in ours. With
        ``transforms``, records pass SQL; otherwise as many ``jobs`` as that run at once. ProcessFailed if no master
        answers, for example.
        """
        # An executor uses the Python of its own host's Spark worker.
        python = "python3" if engine.in_a_cluster else sys.executable
        if submitted is None or "PYSPARK_PYTHON" not in os.environ:
            os.environ["PYSPARK_PYTHON"] = python
        self._master = engine.spark_master
        added = SparkConf(loadDefaults=False).setAll(list((submitted or {}).items()))
        try:
            gateway = closed_gateway(port, secret, 2 * engine.task_count if transforms else jobs)
            for name in XML_FETCHES if submitted else ():  # its options are not ours
                gateway.jvm.java.lang.System.setProperty(name, "")
            self._context: Any = SparkContext(conf=added, gateway=gateway)
        except (Py4JError, OSError) as error:
            raise ProcessFailed(f"SPARK_MASTER={self._master}: {spark_error(str(error))}") from error
        # The thread that waits for Java's accumulators would print a stack trace when Java ends.
        setattr(self._context._accumulatorServer, "handle_error", lambda *_: None)  # noqa: B010
        until = monotonic() + _EXECUTORS_PATIENCE
        self._name_stages()
        slots = engine.task_count * slots_each(transforms=transforms)
        while self.room() < slots and monotonic() < until:
            time.sleep(_POLL)

    @property
    def ui(self) -> str:
        """The address of Spark's page; empty without one."""
        port = urlsplit(self._context.uiWebUrl or "").port
        return f"http://{LOOPBACK}:{port}" if port else ""

    def room(self) -> int:
        """Number of tasks that can run at once now, of all jobs; ProcessFailed if the application has ended."""
        try:
            context = self._context._jsc.sc()
            if not context.isStopped():
                return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
        except (Py4JError, OSError) as error:
            raise ProcessFailed(f"SPARK_MASTER={self._master}: Spark's JVM does not answer") from error
        raise ProcessFailed(
            f"SPARK_MASTER={self._master}: has ended our application: no master answers there, its "
            "SPARK_AUTHENTICATE_SECRET is another, or no executor starts"
        )

    def _name_stages(self) -> None:
        """Name all stages after the application: in each of Java's threads that answers us, while nobody else asks."""
        connections = self._context._gateway._gateway_client.deque
        for _ in range(len(connections)):
            connections.rotate()
            self._context._jsc.setCallSite(self._context.appName)

    def run(self, function: Callable[[int, int], None], tasks: int, description: str) -> None:
        """Run this many tasks, each of which calls a function of a module of ours; returns when all have ended.

        Its arguments are the task's number, and Spark's number of the attempt. ProcessFailed if a task has failed on
        every try.
        """

        def task(number: int, _: Iterator[int]) -> Iterator[int]:
            function(number, TaskContext.get().taskAttemptId())  # type: ignore[union-attr]
            return iter(())

        name = self._context.appName
        work_of_tasks = self._context.parallelize(range(tasks), tasks).mapPartitionsWithIndex(task).setName(name)
        try:
            self._collect(work_of_tasks, name, f"{name}: {description}")
        except _SPARK_ERRORS as error:
            raise ProcessFailed(spark_error(str(error))) from error

    def call(self, function: Callable[[Any], Any], argument: object, description: str) -> Any:
        """The result of a function of a module of ours, which a task calls; a job for each call. Fails as ``run``."""
        try:
            (result,) = self._collect(
                self._context.parallelize([argument], 1).map(function), self._context.appName, description
            )
        except (*_SPARK_ERRORS, OSError) as error:
            raise ProcessFailed(spark_error(str(error))) from error
        return result

    @property
    def context(self) -> Any:
        """PySpark's context of the application."""
        return self._context

    def sql_session(self) -> Any:
        """A session of Spark SQL in the application."""
        from pyspark.sql import SparkSession  # as above

        return SparkSession(self._context)

    def _collect(self, rdd: Any, group: str, description: str) -> list[Any]:
        """The elements of an RDD, by a job of that group and description.

        One call does it: whatever is set by another call may be set for another thread of Java's.
        """
        served = self._context._jvm.PythonRDD.collectAndServeWithJobGroup(rdd._jrdd.rdd(), group, description, False)
        with _load_from_socket(served, rdd._jrdd_deserializer) as stream:
            return list(stream)

    def query(self, table: Table, sql: str) -> tuple[Sequence[str], Iterator[Sequence[Any]]]:
        """The columns and the rows of a query of a table. It is parsed as a query: nothing else is run.

        SqlRefused if it is no query, or does not fit the table.
        """
        logging.getLogger("SQLQueryContextLogger").disabled = True  # prints Java's traces
        try:
            session = self.sql_session()
            session.conf.set("spark.sql.session.timeZone", "UTC")
            session._jsparkSession.sessionState().sqlParser().parseQuery(sql)
            if table.files:
                reading = session.read.schema(table.columns).option("basePath", table.folder)
                frame = reading.parquet(*table.files)
            else:
                frame = session.createDataFrame([], table.columns)
            frame.createOrReplaceTempView(table.name)
            result = session.sql(sql)
            return result.columns, self._rows(result)
        except PySparkException as error:
            raise SqlRefused(_sql_error(error)) from error

    def _rows(self, result: Any) -> Iterator[Sequence[Any]]:
        try:
            yield from result.toLocalIterator()
        except (PySparkException, Py4JError) as error:
            raise SqlRefused(_sql_error(error)) from error

    @property
    def hadoop(self) -> tuple[Any, Any]:
        """Java's classes, and Hadoop's configuration."""
        return self._context._jvm, self._context._jsc.hadoopConfiguration()

    def let_go(self) -> None:
        """Prepare for Java's end: do not report the objects that Python forgets from now on."""
        self._context._gateway._gateway_client.is_connected = False

    def cancel(self) -> None:
        """End the job by force: its Python workers are killed within seconds."""
        self._context.cancelAllJobs()


@contextlib.asynccontextmanager
async def local_spark(engine: EngineSettings, name: str, env_file: Path) -> AsyncIterator[Spark]:
    """Spark for a command, on this host and in a JVM of its own, beside whatever replicator runs; ends with the block.

    ProcessFailed if it does not start.
    """
    engine = replace(engine, spark_master="local[*]")
    with tempdir(name) as directory:
        async with spark_jvm(Application(engine, name, env_file), directory) as jvm:
            spark = await asyncio.to_thread(Spark, *await jvm.gateway(), engine)
            try:
                yield spark
            finally:
                spark.let_go()


_WHERE = re.compile(r"\(TID \d+\) \((\S+) executor \S+\): ")
_TRACEBACK = "Traceback (most recent call last):"
_NO_MODULE = re.compile(r"No module named '?([\w.]+)")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] ")
"""The beginning of Spark's words on an error, as in ``[DIVIDE_BY_ZERO] Division by zero.``"""


def _sql_error(error: Exception) -> str:
    """Spark's words on a query: what is wrong, and where in the text it is, without its traces."""
    text = str(error).split("\n\nJVM stacktrace")[0]
    match = _CONDITION.search(text)
    lines = [line.rstrip() for line in (text[match.start() :] if match else text).splitlines()]
    kept = itertools.takewhile(lambda line: not line.startswith(("'Project", "'Filter", "\tat ", "+-")), lines)
    return "\n".join(line for line in kept if line and not line.startswith("SQLSTATE"))


def spark_error(text: str) -> str:
    """Spark's error as one line that a user can read."""
    if match := _NO_MODULE.search(text):
        if match[1].startswith("appliance."):  # another release has other modules
            return f"{_where(text)}it has another release of the appliance: install the same on every host"
        return f"{_where(text)}its Python lacks {match[1]}: start its Spark worker by `appliance spark worker`"
    if match := _NO_PYTHON.search(text):
        return f"{_where(text)}it has no {match[1]}: start its Spark worker by `appliance spark worker`"
    cause = _python(text) if _TRACEBACK in text else text.partition("\n: ")[2] or text
    first = cause.strip().splitlines()[0] if cause.strip() else "Spark does not say why"
    return f"{_where(text)}{first}"


def _where(text: str) -> str:
    match = _WHERE.search(text)
    return f"on {match[1]}: " if match else ""


def _python(text: str) -> str:
    """The text of the innermost exception, ours without its name."""
    trace = re.split(r"\n\s+at ", text.rpartition(_TRACEBACK)[2])[0]
    lines = [line for line in trace.splitlines() if line and not line.startswith(" ")]
    first, *more = lines or [""]
    return "; ".join([re.sub(r"^appliance\.errors\.\w+: ", "", first), *more])
