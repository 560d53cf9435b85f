"""A verification by Spark: a job for each bundle of partitions or parts, as many at once as Spark has room for."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from appliance.clock import loop_seconds
from appliance.spark.session import Spark
from appliance.verify.model.report import PartitionResult
from appliance.verify.spark_task import verify_in_task
from appliance.verify.sql_jobs import PreparedSql
from appliance.verify.sql_service import SqlService
from appliance.verify.work import Job, bundles, decode_result, encode_job
from appliance.version import VERSION

TakeResult = Callable[[Job, PartitionResult], Sequence[Job]]
"""Receives a job and its result; gives jobs that have to be verified because of it."""


@dataclass(slots=True)
class SparkVerification:
    """Spark with room for ``room`` tasks at once, 0 if this process verifies alone; ``spark_verification`` makes it.

    If records have passed SQL, that is prepared for the tasks, and ``own`` evaluates it for this process.
    """

    spark: Spark
    threads: ThreadPoolExecutor
    room: int
    sql: PreparedSql | None = None
    own: SqlService | None = None
    _idle: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._idle = list(range(self.room))

    async def check(self, jobs: Sequence[Job], wait: float, take: TakeResult) -> None:
        """Verify the jobs, and those that follow from them; the destination gets ``wait`` seconds to catch up."""
        waiting = deque(bundles(jobs, has_sql=self.sql is not None))
        running = set[asyncio.Task[list[tuple[Job, PartitionResult]]]]()
        until = loop_seconds() + wait
        try:
            while waiting or running:
                while waiting and self._idle:
                    seconds = max(0.0, until - loop_seconds())
                    work = self._run(waiting.popleft(), seconds, self._idle.pop())
                    running.add(asyncio.create_task(work, name="verify-bundle"))
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for job, result in (pair for task in done for pair in task.result()):
                    waiting.extend([further] for further in take(job, result))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, jobs: list[Job], wait: float, process: int) -> list[tuple[Job, PartitionResult]]:
        """The results of some jobs, by a task; its process has this number."""
        work = {"version": VERSION, "jobs": [encode_job(job) for job in jobs], "wait": wait}
        if self.sql:
            work["sql"] = self.sql.of_process(process).of([job.replica.source for job in jobs]).encoded()
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self.threads, self.spark.call, verify_in_task, work, f"verify {_described(jobs)}"
            )
        finally:
            self._idle.append(process)
        return [(job, decode_result(fields)) for job, fields in zip(jobs, results, strict=True)]


def _described(jobs: Sequence[Job]) -> str:
    first = jobs[0]
    name = str(first.replica.source)
    if not first.is_whole:
        return f"{name}, offsets {first.source.start} to {first.source.end}"
    return name if len(jobs) == 1 else f"{name} and {len(jobs) - 1} further partitions"
