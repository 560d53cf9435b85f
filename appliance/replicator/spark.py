"""Spark, seen from the driver: with ``daemon``, the only room that imports PySpark.

Spark places the tasks, starts them again when they fail, and brings back what they copied. Nothing that correctness
needs passes through it: a task that is tried twice is fenced by its own second try.
"""

import os
import sys
from typing import Any

from pyspark import SparkContext

from appliance.replicator.portion import LedgerRow
from appliance.replicator.worker import Invitation, work


class Spark:
    """A running Spark application, which ends with the Java machine it runs in."""

    def __init__(self, port: int, secret: str) -> None:
        """Start it: about a second."""
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
        self._context: Any = SparkContext()
        # The thread that waits for Java's accumulators would say with a stack trace that Java has ended.
        setattr(self._context._accumulatorServer, "handle_error", lambda *_: None)  # noqa: B010

    def slice(self, invitation: Invitation, tasks: int) -> list[LedgerRow]:
        """Run one slice and give its ledger; returns when all tasks have."""
        numbers = self._context.parallelize(range(tasks), tasks)
        rows: list[LedgerRow] = numbers.mapPartitions(lambda _: work(invitation)).collect()
        return rows

    def let_go(self) -> None:
        """Java is about to end: objects of it that Python forgets from now on are not to be told of, nor missed."""
        self._context._gateway._gateway_client.is_connected = False

    def cancel(self) -> None:
        """End the slice by force: its Python workers are killed within seconds."""
        self._context.cancelAllJobs()
