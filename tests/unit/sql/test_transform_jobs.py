"""The driver's side of the jobs that run the SQL, with a substitute for Spark."""

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from appliance.engine.control.connection import dialled
from appliance.engine.model.ranges import Range
from appliance.errors import ApplianceError
from appliance.sql.flight.service import TransformService
from appliance.sql.jobs.jobs import JobFailed, run_jobs
from tests.support.patience import PATIENCE


class Sql:
    """A prepared SQL with a defect in its first job."""

    def __init__(self) -> None:
        self.jobs, self.ended = 0, threading.Event()

    def run(self, _: int) -> None:
        self.jobs += 1
        if self.jobs == 1:
            raise RuntimeError("a defect")
        self.ended.wait(PATIENCE)

    def reason(self, _: Range) -> str:
        return ""


async def test_case_488_an_unexpected_error_of_a_job_is_told_and_the_next_job_begins(tmp_path: Path) -> None:
    # Before, no job of that task was ever run again, and its lanes waited for ever without a word.
    sql, told = Sql(), list[str]()

    def tell(_: str, error: ApplianceError | None) -> None:
        if error:
            told.append(str(error))

    with ThreadPoolExecutor(2) as threads:
        async with TransformService(True, tell).serving(tmp_path / "socket"):
            jobs = asyncio.create_task(run_jobs(sql, 0, partial(dialled, tmp_path / "socket", ""), threads))
            try:
                async with asyncio.timeout(PATIENCE):
                    while sql.jobs < 2:
                        await asyncio.sleep(0.01)
            finally:
                jobs.cancel()
                sql.ended.set()
                with contextlib.suppress(asyncio.CancelledError):
                    await jobs
    assert told == ["SQL in flight: a Spark job failed: unexpected RuntimeError: a defect"]


def test_what_a_record_needs_more_of_than_java_has_is_its_failure_and_what_java_lacks_is_not() -> None:
    aborted = "org.apache.spark.SparkException: Job aborted: Lost task 0.3 (TID 7) (host executor driver): "
    for own in ("java.lang.StackOverflowError", "java.lang.OutOfMemoryError: Java heap space"):
        failed = JobFailed("Py4JJavaError", aborted + own, "")
        assert (str(failed), failed.of_record) == (own, True)
    lacking = JobFailed("Py4JJavaError", f"{aborted}java.lang.OutOfMemoryError: unable to create native thread", "")
    assert not lacking.of_record
