"""The work of one Spark task: some jobs of a verification, with the settings of the task's own host."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Any

from appliance.errors import PeerError
from appliance.link.handle import Link
from appliance.settings.values import Settings
from appliance.spark.host import own_settings
from appliance.verify.checker import Checker
from appliance.verify.model.report import PartitionResult
from appliance.verify.partition_sql import ServedSql, decode_served_sql
from appliance.verify.sql import CopiedBySql
from appliance.verify.sql_service import serving
from appliance.verify.work import Job, decode_job
from appliance.version import VERSION


def verify_in_task(work: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the jobs of some ``work``, in their order."""
    if work["version"] != VERSION:
        raise PeerError(
            f"{socket.gethostname()} has release {VERSION} of the appliance and the command {work['version']}: "
            "install the same on every host of the Spark cluster"
        )
    jobs = [decode_job(fields) for fields in work["jobs"]]
    sql = decode_served_sql(work["sql"]) if "sql" in work else None
    results = asyncio.run(_verify(own_settings(), jobs, work["wait"], sql))
    return [asdict(result) for result in results]


async def _verify(settings: Settings, jobs: Sequence[Job], wait: float, sql: ServedSql | None) -> list[PartitionResult]:
    results: dict[int, PartitionResult] = {}
    async with Link.open(settings) as link, _copied_by_sql(sql) as by_sql:
        checker = Checker(link, by_sql)
        await checker.check(
            jobs, wait, lambda job, result: results.__setitem__(id(job), result), lambda _job, _offset: None
        )
    return [results[id(job)] for job in jobs]


@contextlib.asynccontextmanager
async def _copied_by_sql(sql: ServedSql | None) -> AsyncIterator[CopiedBySql | None]:
    """The records of the source as the SQL has made them; None without SQL."""
    if sql is None:
        yield None
    else:
        async with serving(sql) as service:
            yield CopiedBySql(sql.partitions, service.evaluate)
