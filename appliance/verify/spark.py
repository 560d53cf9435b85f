"""Spark for a verification: its tasks share the work out, or it evaluates the link's SQL for the command, or both."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from appliance.clock import loop_seconds
from appliance.errors import ProcessFailed
from appliance.kafka.protocol.metadata import Partition
from appliance.settings.secret import Secret
from appliance.settings.values import EngineSettings, Settings
from appliance.spark.configuration import FIRST_COMPILER, Application
from appliance.spark.session import Spark
from appliance.spark.spark_jvm import SparkJvm, spark_jvm
from appliance.spark.tempdir import tempdir
from appliance.verify.fan_out import SparkVerification
from appliance.verify.partition_sql import PartitionSql, statements_of
from appliance.verify.sql_jobs import PreparedSql, prepared, running_jobs
from appliance.verify.sql_service import SqlService, serving

_LOCAL = "local[*]"
_FOR_LITTLE = {"spark.driver.extraJavaOptions": f"{FIRST_COMPILER} -XX:CompileThresholdScaling=1"}
"""For up to ``_LITTLE`` records Java's second compiler takes longer than it gains."""
_LITTLE = 1_000_000
_WAITING_MAX = 64
"""The most jobs that wait for ranges of SQL: one for each statement, in each task and in the command's own process."""
_START_SECONDS = 180.0
_ROOM_SECONDS, _POLL = 60.0, 0.5

SqlByPartition = Mapping[Partition, PartitionSql]


@contextlib.asynccontextmanager
async def spark_verification(
    settings: Settings, env_file: Path, sql: SqlByPartition, *, offsets: int, shared: bool
) -> AsyncIterator[SparkVerification]:
    """Spark as the settings say, while the block runs. Its ports are any: the replicator's own may run beside it.

    ``sql`` is that of the partitions whose records have passed any, which is evaluated on this host, for so many
    ``offsets``. If the work is not ``shared``, Spark does nothing else. ProcessFailed: it has no core for us.
    """
    name, engine = f"verify-{settings.replicator}", dataclasses.replace(settings.engine, spark_driver_port=0)
    sized, tasks = engine, engine.task_count if shared else 0
    if sql:
        engine = dataclasses.replace(engine, spark_master=_LOCAL)
        statements = len(statements_of(sql.values()))
        tasks = min(tasks, max(0, _WAITING_MAX // statements - 1))
        # Spark has room for twice as many tasks: for those that wait for ranges, and for those that verify.
        sized = dataclasses.replace(engine, tasks=statements * (tasks + 1))
    with tempdir(name) as directory:
        more = _FOR_LITTLE if offsets <= _LITTLE else {}
        async with spark_jvm(Application(sized, name, env_file, more, bool(sql)), directory) as jvm:
            spark = await _started(jvm, sized, engine.task_count, transforms=bool(sql))
            threads = ThreadPoolExecutor(engine.task_count, "verify")
            try:
                room = min(tasks, await _room(spark, engine.spark_master)) if tasks else 0
                async with _evaluating(spark, jvm, sql, settings.transform.salt, room) as evaluated:
                    yield SparkVerification(spark, threads, room, *evaluated)
            finally:
                spark.let_go()
                jvm.kill()  # first: the threads wait for its jobs
                threads.shutdown()


async def _started(jvm: SparkJvm, engine: EngineSettings, jobs: int, *, transforms: bool) -> Spark:
    try:
        async with asyncio.timeout(_START_SECONDS):
            port, secret = await jvm.gateway()
            return await asyncio.to_thread(partial(Spark, port, secret, engine, transforms=transforms, jobs=jobs))
    except TimeoutError as error:
        late = f"SPARK_MASTER={engine.spark_master}: Spark has not started within {_START_SECONDS:g} s"
        raise ProcessFailed(late) from error


async def _room(spark: Spark, master: str) -> int:
    """Number of tasks that can run at once; waits for the first."""
    until = loop_seconds() + _ROOM_SECONDS
    while not (room := await asyncio.to_thread(spark.room)):
        if loop_seconds() > until:
            raise ProcessFailed(f"SPARK_MASTER={master} has no core for us: is a worker free?")
        await asyncio.sleep(_POLL)
    return room


@contextlib.asynccontextmanager
async def _evaluating(
    spark: Spark, jvm: SparkJvm, sql: SqlByPartition, salt: Secret, tasks: int
) -> AsyncIterator[tuple[PreparedSql, SqlService] | tuple[()]]:
    """The SQL, prepared for the tasks, and served for this process; nothing if there is none."""
    if not sql:
        yield ()
        return
    plans = await asyncio.to_thread(prepared, spark, sql, salt, jvm.tempdir, tasks + 1)
    async with running_jobs(plans, tasks + 1), serving(plans.of_process(tasks)) as service:
        watching = asyncio.create_task(_watch(jvm, service), name="verify-watch")
        try:
            yield plans, service
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _watch(jvm: SparkJvm, service: SqlService) -> None:
    """Let nobody wait for a Java that has ended."""
    while True:
        try:
            jvm.require_running()
        except ProcessFailed as error:
            return service.give_up(error)
        await asyncio.sleep(_POLL)
