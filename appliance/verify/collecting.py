"""The results of jobs, collected into one for each partition; with those that an earlier run has kept."""

import asyncio
from collections.abc import Callable, Collection, Sequence

from appliance.kafka.protocol.metadata import Partition
from appliance.verify.checker import Checker
from appliance.verify.dividing import parts_of
from appliance.verify.model.report import PartitionResult
from appliance.verify.resume_file import ResumeFile
from appliance.verify.work import Job, joined, offsets_of

_AT_ONCE = 8
"""Partitions that are divided at once."""

Progress = Callable[[int, int], None]
"""A callback with the number of compared source offsets, and their total."""


class Tally:
    """Tells ``progress`` how much of the jobs is compared."""

    def __init__(self, jobs: Collection[Job], progress: Progress) -> None:
        self._done: dict[tuple[Partition, int], int] = {}
        self._total = offsets_of(jobs)
        self._progress = progress

    def reached(self, job: Job, offset: int) -> None:
        """A job has been compared up to this source offset; a partition may be verified again."""
        self._done[job.replica.source, job.source.start] = min(offset, job.source.end) - job.source.start
        self._progress(min(sum(self._done.values()), self._total), self._total)


class Collector:
    """``jobs`` are whole partitions; ``results`` are those known so far."""

    def __init__(self, jobs: Sequence[Job], file: ResumeFile, tally: Tally) -> None:
        self.results: list[PartitionResult] = []
        self._file = file
        self._tally = tally
        self._parts = {job: file.parts(job) or [job] for job in jobs}
        self._whole = {job.replica: job for job in jobs}
        self._found: dict[Job, PartitionResult] = {}

    async def divide(self, checker: Checker) -> None:
        """Divide the partitions that no earlier run has begun."""
        limit = asyncio.Semaphore(_AT_ONCE)

        async def divide(job: Job) -> None:
            if self._file.parts(job) is None:
                async with limit:
                    self._parts[job] = await parts_of(checker, job)

        await asyncio.gather(*map(divide, self._parts))

    def begin(self) -> list[Job]:
        """The jobs that are left to verify."""
        left = []
        for whole, parts in self._parts.items():
            self._file.divided(parts)
            for part in parts:
                if known := self._file.result(part):
                    left += self._take(whole, part, known)
                else:
                    left.append(part)
        return left

    def found(self, job: Job, result: PartitionResult) -> list[Job]:
        """Take a result; gives the whole partition if one of its parts is not equal: it is verified in one piece."""
        self._file.found(job, result)
        return self._take(self._whole[job.replica], job, result)

    def _take(self, whole: Job, job: Job, result: PartitionResult) -> list[Job]:
        self._tally.reached(job, job.source.end)
        if job.is_whole:
            self.results.append(result)
            return []
        self._found[job] = result
        parts = self._parts[whole]
        if not all(part in self._found for part in parts):
            return []
        if (together := joined([self._found[part] for part in parts])) is None:
            return [whole]
        self.results.append(together)
        return []
