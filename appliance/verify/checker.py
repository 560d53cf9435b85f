"""The verification of jobs, several at once, on the connections of one process: the command's, or a Spark task's."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from appliance.clock import monotonic
from appliance.errors import ApplianceError
from appliance.link.handle import Link
from appliance.logs.model.span import CopyState
from appliance.logs.reader import LogReader, WriterFilter
from appliance.logs.side import Side
from appliance.verify.compacted import verify_newest_records
from appliance.verify.model.report import PartitionResult
from appliance.verify.partition import verdict_on, verify_every_record
from appliance.verify.sql import CopiedBySql
from appliance.verify.work import Job

WORKERS = 4
"""Partitions at once: each holds up to a Fetch of either side, and its decoded part."""

Reached = Callable[[Job, int], None]
"""Receives a job and the source offset up to which it has been compared."""

TakeResult = Callable[[Job, PartitionResult], None]
"""Receives a job and its result."""


class Checker:
    """Verifies jobs of one link.

    ``sql`` makes the source's records what the link's SQL has made of them; None where they have passed none.
    """

    def __init__(self, link: Link, sql: CopiedBySql | None = None) -> None:
        self._source, self._destination = link.source, link.destination
        self._newest = asyncio.Lock()
        self._written = WriterFilter(link.source, link.destination, link.naming)
        self._sql = sql

    async def check(self, jobs: Iterable[Job], wait: float, take: TakeResult, reached: Reached) -> None:
        """Verify the jobs; the destination gets ``wait`` seconds to catch up."""
        waiting, deadline = deque(jobs), monotonic() + wait

        async def work(purpose: str) -> None:
            while waiting:
                job = waiting.popleft()
                take(job, await self._verdict(job, deadline, purpose, reached))

        names = [f"verify-{number}" for number in range(min(WORKERS, len(waiting)))]
        workers = [asyncio.create_task(work(name), name=name) for name in names]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _verdict(self, job: Job, deadline: float, purpose: str, reached: Reached) -> PartitionResult:
        source = self.at_source(job, purpose, job.source.start)
        destination = self.at_destination(job, purpose, job.destination.start)
        try:
            if job.compacted:
                async with self._newest:  # one table at a time
                    result = await verify_newest_records(
                        job, source, destination, deadline, partial(reached, job), self._sql
                    )
            else:
                ours = Side(source, job.source)
                theirs = Side(destination, job.destination, deadline if job.last else None)
                result = await verify_every_record(job, ours, theirs, partial(reached, job))
            return replace(result, failed_at=self._sql.failed_at.get(job.replica.source)) if self._sql else result
        except ApplianceError as error:
            if error.retriable:  # only this partition's problem, unless nobody answers any more
                await self._source.metadata([])
                await self._destination.metadata([])
            return verdict_on(job.replica, CopyState.NOT_COMPARED, str(error))

    def at_source(self, job: Job, purpose: str, offset: int) -> LogReader:
        """A reader of what is copied, from an offset of the source on."""
        choose = self._written.at_source
        chosen = self._sql.of(job.replica.source, choose, by_key=job.compacted) if self._sql else choose
        return LogReader(self._source, job.replica.source, purpose, offset, chosen, decodes=chosen is not choose)

    def at_destination(self, job: Job, purpose: str, offset: int) -> LogReader:
        """A reader of the link's copies, from an offset of the destination on."""
        return LogReader(self._destination, job.replica.copy, purpose, offset, self._written.in_copy)
