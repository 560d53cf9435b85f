"""The results of jobs, collected into one for each partition; with those that an earlier run has kept.

Long logs are divided into parts, at places that both logs show; ``work`` says why any place will do.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence

from appliance.errors import ApplianceError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import Batch
from appliance.logs.model.span import Span
from appliance.logs.side import Side
from appliance.verify.checker import Checker
from appliance.verify.model.report import PartitionResult
from appliance.verify.resume_file import ResumeFile
from appliance.verify.work import Job, divided, divisions, joined, offsets_of

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
        remaining = []
        for whole, parts in self._parts.items():
            self._file.divided(parts)
            for part in parts:
                if result := self._file.result(part):
                    remaining += self._take(whole, part, result)
                else:
                    remaining.append(part)
        return remaining

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


_PURPOSE = "verify-divide"


async def parts_of(checker: Checker, job: Job) -> list[Job]:
    """The parts of a job, in order; the job itself if it cannot be divided, or is not worth it."""
    places: list[tuple[int, int]] = []
    try:
        for offset in divisions(job):
            place = await _place(checker, job, offset)
            if place is None or (places and (place[0] <= places[-1][0] or place[1] <= places[-1][1])):
                break  # others would probably be looked for in vain, too
            places.append(place)
    except ApplianceError:
        places = []  # the verification meets it again, and says what it is
    return divided(job, places)


async def _place(checker: Checker, job: Job, offset: int) -> tuple[int, int] | None:
    """The offsets of a record of both sides, with which the first batch of the source from ``offset`` on begins."""
    first = _first(await checker.at_source(job, _PURPOSE, offset).read(), offset)
    if first is None or first >= job.source.end:
        return None
    ours = Side(checker.at_source(job, _PURPOSE, first), Span(first, job.source.end))
    if not await ours.more():
        return None
    anchor = await ours.anchor()
    place = (
        await Side(checker.at_destination(job, _PURPOSE, job.destination.start), job.destination).find(anchor)
    ).whole
    if place is None or not anchor.complete or not job.destination.start < place < job.destination.end:
        return None
    return first, place


def _first(batches: Sequence[Batch], offset: int) -> int | None:
    """The first offset of the first batch that begins at ``offset`` or later."""
    starts = [batch.header.base_offset for batch in batches if batch.header.records]
    return next((start for start in starts if start >= offset), None)
