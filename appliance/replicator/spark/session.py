"""Spark, seen from the driver: with ``gateway`` and ``daemon``, the only room that imports PySpark.

Spark places the tasks, starts them again when they fail, and brings back what they copied. Nothing that correctness
needs passes through it: a task that is tried twice is fenced by its own second try.
"""

import dataclasses
import os
import sys
import time
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from appliance.errors import ProcessFailed
from appliance.replicator.model.chunk import LedgerRow
from appliance.replicator.spark.py4j_gateway import closed_gateway
from appliance.replicator.spark.spark_error import spark_error
from appliance.replicator.spark.worker import DriverEndpoint, work
from appliance.settings.values import EngineSettings
from appliance.version import VERSION

_EXECUTORS_PATIENCE = 10.0
_POLL = 0.05


class Spark:
    """A running Spark application, which ends with the Java machine it runs in."""

    def __init__(self, port: int, secret: str, engine: EngineSettings) -> None:
        """Start it: about a second, and as long as a cluster's executors take.

        Raises:
            ProcessFailed: there is no such application, for example because no master answers.
        """
        # An executor has the Python that its own host's Spark worker has.
        os.environ["PYSPARK_PYTHON"] = "python3" if engine.in_a_cluster else sys.executable
        self._master = engine.spark_master
        self._prepared: tuple[DriverEndpoint, int, Any] | None = None
        try:
            self._context: Any = SparkContext(gateway=closed_gateway(port, secret))
        except (Py4JError, OSError) as error:
            raise ProcessFailed(f"SPARK_MASTER={self._master}: {spark_error(str(error))}") from error
        # The thread that waits for Java's accumulators would say with a stack trace that Java has ended.
        setattr(self._context._accumulatorServer, "handle_error", lambda *_: None)  # noqa: B010
        until = time.monotonic() + _EXECUTORS_PATIENCE
        while self.room() < engine.task_count and time.monotonic() < until:
            time.sleep(_POLL)

    def room(self) -> int:
        """How many tasks can run at once now.

        Raises:
            ProcessFailed: the application has ended.
        """
        try:
            context = self._context._jsc.sc()
            if not context.isStopped():
                return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
        except (Py4JError, OSError) as error:
            raise ProcessFailed(f"SPARK_MASTER={self._master}: Spark's Java machine does not answer") from error
        raise ProcessFailed(
            f"SPARK_MASTER={self._master}: has ended our application: no master answers there, its "
            "SPARK_AUTHENTICATE_SECRET is another, or no executor starts"
        )

    def slice(self, endpoint: DriverEndpoint, tasks: int) -> list[LedgerRow]:
        """Run one slice and give its ledger; returns when all tasks have.

        Raises:
            ProcessFailed: a task failed on every try.
        """
        try:
            rows: list[LedgerRow] = self._tasks(endpoint, tasks).collect()
        except Py4JError as error:
            raise ProcessFailed(spark_error(str(error))) from error
        return rows

    def _tasks(self, endpoint: DriverEndpoint, tasks: int) -> Any:
        """What a slice runs; most are like the one before, and nothing is copied while one is made ready."""
        if self._prepared is None or self._prepared[:2] != (endpoint, tasks):
            invited = dataclasses.asdict(endpoint)
            numbers = self._context.parallelize(range(tasks), tasks)
            self._prepared = endpoint, tasks, numbers.mapPartitions(lambda _: work(VERSION, invited))
        return self._prepared[2]

    def let_go(self) -> None:
        """Java is about to end: objects of it that Python forgets from now on are not to be told of, nor missed."""
        self._context._gateway._gateway_client.is_connected = False

    def cancel(self) -> None:
        """End the slice by force: its Python workers are killed within seconds."""
        self._context.cancelAllJobs()
