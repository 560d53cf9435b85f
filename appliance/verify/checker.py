"""The verification of jobs, several at once, on the connections of one process: the command's, or a Spark task's."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable

from appliance.errors import ApplianceError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica
from appliance.verify.compacted import verify_newest_records
from appliance.verify.model.report import CopyState, PartitionResult
from appliance.verify.partition import Terms, verify_every_record
from appliance.verify.reader import Reader, Written
from appliance.verify.side import Side
from appliance.verify.sql import CopiedBySql
from appliance.verify.work import Job

WORKERS = 4
"""Partitions at once: each holds up to a Fetch of either side, and its decoded part."""

Reached = Callable[[Job, int], None]
"""Receives a job and the source offset up to which it has been compared."""

Found = Callable[[Job, PartitionResult], None]
"""Receives a job and its result."""


class Checker:
    """Verifies jobs of one link; ``latest`` is true when the link began at the end of the topics.

    ``sql`` makes the source's records what the link's SQL has made of them; None where they have passed none.
    """

    def __init__(
        self,
        source: KafkaCluster,
        destination: KafkaCluster,
        naming: Naming,
        latest: bool,
        sql: CopiedBySql | None = None,
    ) -> None:
        self._source = source
        self._destination = destination
        self._latest = latest
        self._newest = asyncio.Lock()
        self._written = Written(source, destination, naming)
        self._sql = sql

    async def check(self, jobs: Iterable[Job], wait: float, found: Found, reached: Reached) -> None:
        """Verify the jobs; the destination gets ``wait`` seconds to catch up.

        Raises:
            BrokerBusy, BrokerRefused, Unreachable, PeerError: a cluster does not answer any more.
        """
        waiting, terms = deque(jobs), Terms(self._latest, time.monotonic() + wait)

        async def work(purpose: str) -> None:
            while waiting:
                job = waiting.popleft()
                found(job, await self._verdict(job, terms, purpose, reached))

        names = [f"verify-{number}" for number in range(min(WORKERS, len(waiting)))]
        workers = [asyncio.create_task(work(name), name=name) for name in names]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _verdict(self, job: Job, terms: Terms, purpose: str, reached: Reached) -> PartitionResult:
        source = self.at_source(job, purpose, job.source.start)
        destination = self.at_destination(job, purpose, job.destination.start)
        try:
            if job.compacted:
                async with self._newest:  # one table at a time
                    sides = source, destination, job.source.end, terms
                    return await verify_newest_records(
                        job.replica, *sides, lambda offset: reached(job, offset), lambda: self._may_lack_keys(job)
                    )
            ours = Side(source, job.source)
            theirs = Side(destination, job.destination, terms.deadline if job.last else None)
            return await verify_every_record(job, ours, theirs, terms, lambda offset: reached(job, offset))
        except ApplianceError as error:
            if error.retriable:  # only this partition's problem, unless nobody answers any more
                await self._source.metadata([])
                await self._destination.metadata([])
            return not_compared(job.replica, str(error))

    def at_source(self, job: Job, purpose: str, offset: int) -> Reader:
        """A reader of what is copied, from an offset of the source on."""
        choose = self._written.at_source
        made = self._sql.of(job.replica.source, choose, by_key=job.compacted) if self._sql else choose
        return Reader(self._source, job.replica.source, purpose, offset, made)

    def _may_lack_keys(self, job: Job) -> bool:
        return self._sql is not None and self._sql.may_lack_keys(job.replica.source)

    def at_destination(self, job: Job, purpose: str, offset: int) -> Reader:
        """A reader of the link's copies, from an offset of the destination on."""
        return Reader(self._destination, job.replica.copy, purpose, offset, self._written.in_copy)


def not_compared(replica: Replica, why: str) -> PartitionResult:
    """The result of a partition without one."""
    return PartitionResult(
        replica.source_topic, replica.destination_topic, replica.partition, CopyState.NOT_COMPARED, why
    )
