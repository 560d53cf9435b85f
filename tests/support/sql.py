"""SQL in flight in this process, with Spark's own JVM and Python workers, and without brokers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from appliance.errors import ApplianceError
from appliance.kafka.records.columns import Columns, decoded, encoded
from appliance.replicator.spark.session import Spark
from appliance.replicator.spark.spark_jvm import spark_jvm
from appliance.replicator.spark.transform_jobs import Sql, run_jobs
from appliance.replicator.transform.ranges import Outcome, Range
from appliance.replicator.transform.service import TransformService
from appliance.settings.secret import Secret
from appliance.settings.values import EngineSettings
from appliance.transform.model.statement import Statement
from tests.support.engine import ENGINE
from tests.support.processes import family, runs
from tests.support.spark_context import forget_context, hide_gateway


def range_of(values: Sequence[bytes | None], first: int = 0, partition: int = 0, key: bytes = b"key") -> Range:
    """A range of records with these values, one after the other."""
    offsets, nothing = list(range(first, first + len(values))), [()] * len(values)
    columns = Columns(offsets, [1000 + at for at in offsets], [key] * len(values), list(values), [*nothing])
    end = first + len(values)
    return Range(("orders", partition), first, end, tuple(encoded(columns, 0, 10**6, end)), 10**6)


def values_of(outcome: Outcome) -> list[bytes | None]:
    """The values of the records that came out."""
    batches = outcome.batches
    return [value for batch in batches for value in decoded(batch.data, batch.first_offset, batch.runs).values]


@dataclass(slots=True)
class RunningSql:
    """The service of one task, and the jobs that it has got."""

    service: TransformService
    jobs: int = 0
    problems: list[str] = field(default_factory=list)
    sql: Sql | None = None

    def run(self, task: int) -> None:
        """Run a job, and count it."""
        assert self.sql is not None
        self.jobs += 1
        self.sql.run(task)

    def reason(self, record: Range) -> str:
        """See ``Sql``."""
        assert self.sql is not None
        return self.sql.reason(record)

    def ends(self) -> dict[str, list[psutil.Process]]:
        """The Python processes of each end."""
        every = family(psutil.Process().pid)
        # A fork has the command line of its daemon.
        daemons = [process for process in every if runs(process, "appliance.replicator.spark.daemon")]
        forked = [(daemon.environ(), workers) for daemon in daemons if (workers := daemon.children())]
        return {environment["APPLIANCE_TRANSFORM_END"]: workers for environment, workers in forked}

    def workers(self) -> list[psutil.Process]:
        """The Python processes of both ends."""
        return [worker for workers in self.ends().values() for worker in workers]


@contextlib.asynccontextmanager
async def running_sql(
    directory: Path, statement: str, *, stops: bool = True, salt: str = ""
) -> AsyncIterator[RunningSql]:
    """A statement, run by Spark for the ranges that the block asks for."""

    def tell(_: str, error: ApplianceError | None) -> None:
        if error:
            made.problems.append(str(error))

    service, socket = TransformService(stops, tell), directory / "transform-0"
    made = RunningSql(service)
    async with spark_for_sql(directory) as spark:
        given = Statement(statement), Secret(salt), [str(socket)]
        made.sql = await asyncio.to_thread(spark.prepare_transform, *given)
        with ThreadPoolExecutor(2) as threads:
            async with service.serving(socket):
                jobs = asyncio.create_task(run_jobs(made, 0, socket, threads), name="jobs")
                try:
                    yield made
                finally:
                    jobs.cancel()
                    await asyncio.gather(jobs, return_exceptions=True)


@contextlib.asynccontextmanager
async def spark_for_sql(directory: Path, engine: EngineSettings = ENGINE) -> AsyncIterator[Spark]:
    """Spark with room for the jobs of SQL."""
    async with spark_jvm(engine, "sql", directory / "setenv.sh", directory, transforms=True) as jvm:
        spark = await asyncio.to_thread(Spark, *await jvm.gateway(), engine, transforms=True)
        hide_gateway()
        try:
            yield spark
        finally:
            spark.let_go()
            forget_context()
