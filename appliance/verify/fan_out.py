"""A verification by Spark: a job for each bundle of partitions or parts, as many at once as Spark has room for."""

import asyncio
import contextlib
import dataclasses
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from appliance.errors import ProcessFailed
from appliance.replicator.spark.session import Spark
from appliance.replicator.spark.spark_jvm import spark_jvm
from appliance.replicator.spark.tempdir import tempdir
from appliance.settings.values import Settings
from appliance.verify.model.report import PartitionResult
from appliance.verify.spark_task import verify_in_task
from appliance.verify.work import Job, bundles, decode_result, encode_job
from appliance.version import VERSION

_START_SECONDS = 180.0
_ROOM_SECONDS, _POLL = 60.0, 0.5

Found = Callable[[Job, PartitionResult], Sequence[Job]]
"""Receives a job and its result; gives jobs that have to be verified because of it."""


class SparkVerification:
    """Spark with room for ``room`` tasks at once; ``spark_verification`` starts and ends it."""

    def __init__(self, spark: Spark, threads: ThreadPoolExecutor, room: int) -> None:
        self.room = room
        self._spark = spark
        self._threads = threads

    async def check(self, jobs: Sequence[Job], wait: float, found: Found) -> None:
        """Verify the jobs, and those that follow from them; the destination gets ``wait`` seconds to catch up.

        Raises:
            ProcessFailed: a task failed on every try; it says why.
        """
        waiting, running = deque(bundles(jobs)), set[asyncio.Task[list[tuple[Job, PartitionResult]]]]()
        until = asyncio.get_running_loop().time() + wait
        try:
            while waiting or running:
                while waiting and len(running) < self.room:
                    left = max(0.0, until - asyncio.get_running_loop().time())
                    running.add(asyncio.create_task(self._run(waiting.popleft(), left), name="verify-bundle"))
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for job, result in (pair for task in done for pair in task.result()):
                    waiting.extend([further] for further in found(job, result))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, jobs: list[Job], wait: float) -> list[tuple[Job, PartitionResult]]:
        given = {"version": VERSION, "jobs": [encode_job(job) for job in jobs], "wait": wait}
        loop = asyncio.get_running_loop()
        results = await loop.run_in_executor(
            self._threads, self._spark.call, verify_in_task, given, f"verify {_described(jobs)}"
        )
        return [(job, decode_result(fields)) for job, fields in zip(jobs, results, strict=True)]


async def _room(spark: Spark, master: str) -> int:
    """Number of tasks that can run at once; waits for the first.

    Raises:
        ProcessFailed: there is no room for long.
    """
    until = asyncio.get_running_loop().time() + _ROOM_SECONDS
    while not (room := await asyncio.to_thread(spark.room)):
        if asyncio.get_running_loop().time() > until:
            raise ProcessFailed(f"SPARK_MASTER={master} has no core for us: is a worker free?")
        await asyncio.sleep(_POLL)
    return room


def _described(jobs: Sequence[Job]) -> str:
    first = jobs[0]
    name = f"{first.replica.source_topic}-{first.replica.partition}"
    if not first.is_whole:
        return f"{name}, offsets {first.source.start} to {first.source.end}"
    return name if len(jobs) == 1 else f"{name} and {len(jobs) - 1} further partitions"


@contextlib.asynccontextmanager
async def spark_verification(settings: Settings, env_file: Path) -> AsyncIterator[SparkVerification]:
    """Spark as the settings say, while the block runs. Its ports are any: the replicator's own may run beside it.

    Raises:
        SettingsError: see ``spark_jvm``.
        ProcessFailed: Spark does not start, or has no core for us.
    """
    name, engine = f"verify-{settings.replicator}", dataclasses.replace(settings.engine, spark_driver_port=0)
    with tempdir(name) as directory:
        async with spark_jvm(engine, name, env_file, directory) as jvm:
            try:
                async with asyncio.timeout(_START_SECONDS):
                    port, secret = await jvm.gateway()
                    spark = await asyncio.to_thread(partial(Spark, port, secret, engine, jobs=engine.task_count))
            except TimeoutError as error:
                late = f"SPARK_MASTER={engine.spark_master}: Spark has not started within {_START_SECONDS:g} s"
                raise ProcessFailed(late) from error
            threads = ThreadPoolExecutor(engine.task_count, "verify")
            try:
                room = min(engine.task_count, await _room(spark, engine.spark_master))
                yield SparkVerification(spark, threads, room)
            finally:
                spark.let_go()
                jvm.kill()  # first: the threads wait for its jobs
                threads.shutdown()
