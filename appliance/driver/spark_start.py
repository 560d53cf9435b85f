"""The start of Spark, and of the SQL in it."""

import asyncio
import functools
import logging
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from appliance.driver.jobs import with_timeout
from appliance.engine.control.client import transform_socket
from appliance.engine.control.connection import dialled
from appliance.engine.control.server import ControlServer
from appliance.settings.secret import Secret
from appliance.settings.values import Settings
from appliance.spark.session import Spark
from appliance.spark.spark_jvm import SparkJvm
from appliance.spark.submitted import SubmittedJvm
from appliance.sql.jobs.job_ends import Lanes, LanesOnHosts
from appliance.sql.jobs.jobs import Dial, Sql, run_jobs
from appliance.sql.model.statement import Statement

log = logging.getLogger("appliance.replicator")

_START_PATIENCE = 180.0
"""Spark gives up a master after a minute, and we wait ten seconds for its executors."""


@dataclass(frozen=True, slots=True)
class SqlJobs:
    """The jobs of SQL in flight; there are none if records are copied as they are."""

    sql: Sql | None
    control: ControlServer
    threads: ThreadPoolExecutor

    def of_tasks(self, tasks: int) -> list[Coroutine[Any, Any, None]]:
        """The work of each of these tasks: one job after the other."""
        if self.sql is None:
            return []
        return [run_jobs(self.sql, task, self._dial(task), self.threads) for task in range(tasks)]

    def _dial(self, task: int) -> Dial:
        """The driver's own way to the process of a task."""
        at, token = self.control.address, self.control.token
        if isinstance(at, Path):
            return functools.partial(dialled, transform_socket(at, task), token)
        return functools.partial(self.control.addresses.dial, task, token)


async def start_spark(
    settings: Settings, jvm: SparkJvm | SubmittedJvm, control: ControlServer, statement: Statement | None
) -> tuple[Spark, SqlJobs]:
    """Start Spark in its Java, let its tasks connect, and prepare the SQL; SqlRefused if it does not take that."""
    port, secret = await with_timeout(jvm.gateway(), _START_PATIENCE)
    transform, engine = settings.transform, settings.engine
    starting = asyncio.to_thread(Spark, port, secret, engine, jvm.entries, transforms=transform.wanted)
    spark = await with_timeout(starting, _START_PATIENCE)
    control.start()
    if spark.ui:
        log.info("Spark's page", extra={"fields": {"address": spark.ui}})
    sql = None
    if statement is not None:
        from appliance.sql.jobs.plan import prepare  # loads the whole of PySpark's SQL

        lanes = _lanes(control, engine.task_count)
        preparing = asyncio.to_thread(prepare, spark, statement, transform.salt, lanes)
        sql = await with_timeout(preparing, _START_PATIENCE)
    return spark, SqlJobs(sql, control, ThreadPoolExecutor(2 * engine.task_count, "sql"))


def _lanes(control: ControlServer, tasks: int) -> Lanes:
    """The way of the SQL's jobs to the processes of the tasks."""
    if isinstance(control.address, Path):
        return [str(transform_socket(control.address, task)) for task in range(tasks)]
    return LanesOnHosts(control.address, Secret(control.token), tasks)
