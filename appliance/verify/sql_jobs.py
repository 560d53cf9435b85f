"""The Spark jobs that evaluate the link's SQL for a verification, as those of a replicator do.

Each process that verifies has a number, and a socket for each statement. Its jobs wait there from its first range of a
statement on, one after the other, until the process ends.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from appliance.engine.control.connection import dialled
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.link_sql import LinkSql, salt_digest
from appliance.settings.secret import Secret
from appliance.spark.session import Spark
from appliance.sql.jobs.jobs import Sql, run_jobs
from appliance.sql.model.statement import Statement, StatementRefused
from appliance.verify.partition_sql import PartitionSql, ServedSql, statements_of

_OTHER_SALT = "were copied with another REPLICA_TRANSFORM_SALT: verify with that one"


@dataclass(frozen=True, slots=True)
class PreparedSql:
    """The SQL of all partitions, prepared for several processes."""

    partitions: Mapping[Partition, PartitionSql]
    plans: Mapping[LinkSql, Sql]
    refused: Mapping[LinkSql, str]
    directory: Path

    def of_process(self, number: int) -> ServedSql:
        """The SQL for the process with a number."""
        at = {sql: _socket(self.directory, statement, number) for statement, sql in enumerate(self.plans)}
        return ServedSql(self.partitions, at, self.refused)


def _socket(directory: Path, statement: int, process: int) -> Path:
    return directory / f"sql-{statement}-{process}"


def prepared(
    spark: Spark, partitions: Mapping[Partition, PartitionSql], salt: Secret, directory: Path, processes: int
) -> PreparedSql:
    """The statements, prepared for so many processes, whose sockets are in the directory."""
    from appliance.sql.jobs.plan import prepare  # loads the whole of PySpark's SQL

    plans: dict[LinkSql, Sql] = {}
    refused: dict[LinkSql, str] = {}
    for sql in statements_of(partitions.values()):
        if sql.salt and sql.salt != salt_digest(salt.reveal()):
            refused[sql] = _OTHER_SALT
            continue
        at = [str(_socket(directory, len(plans), process)) for process in range(processes)]
        statement = Statement(sql.text, f"the link's SQL {sql.digest[:12]}", earlier=True)
        try:
            plans[sql] = prepare(spark, statement, salt if sql.salt else Secret(""), at)
        except StatementRefused as error:
            refused[sql] = f"were copied by SQL that is refused: {error.faults[0]}"
    return PreparedSql(partitions, plans, refused, directory)


@contextlib.asynccontextmanager
async def running_jobs(sql: PreparedSql, processes: int) -> AsyncIterator[None]:
    """Run the jobs of each statement for so many processes, while the block runs."""
    threads = ThreadPoolExecutor(max(1, 2 * processes * len(sql.plans)), "sql")
    jobs = [
        asyncio.create_task(run_jobs(plan, process, partial(dialled, socket, ""), threads), name="verify-sql")
        for process in range(processes)
        for plan, socket in zip(sql.plans.values(), sql.of_process(process).sockets.values(), strict=True)
    ]
    try:
        yield
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        threads.shutdown(wait=False)  # they wait for jobs that end with Spark
