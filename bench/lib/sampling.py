"""Samples of a working program's memory, without its JVMs."""

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from bench.lib.procfs import family, memory, processes

_INTERVAL = 0.5
_MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Sample:
    """The sum of all processes' shares in megabytes (10^6 bytes), at a time of ``time.perf_counter``."""

    at: float
    megabytes: float


@dataclass(frozen=True, slots=True)
class Course:
    """The highest sample, and the medians of the first and of the last quarter."""

    highest: float
    first: float
    last: float

    @classmethod
    def of(cls, samples: Sequence[Sample], begin: float, end: float) -> "Course":
        """The summary of the samples from ``begin`` to ``end``.

        Raises:
            ValueError: there are none.
        """
        sizes = [sample.megabytes for sample in samples if begin <= sample.at <= end]
        if not sizes:
            raise ValueError("no sample was taken meanwhile")
        quarter = max(1, len(sizes) // 4)
        return cls(max(sizes), statistics.median(sizes[:quarter]), statistics.median(sizes[-quarter:]))


@contextlib.asynccontextmanager
async def sampled(pid: int) -> AsyncIterator[list[Sample]]:
    """Take a sample of the process and its descendants every half second, while the block runs."""
    samples: list[Sample] = []
    sampling = asyncio.create_task(_sample(pid, samples), name="sampling")
    try:
        yield samples
    finally:
        sampling.cancel()
        await asyncio.gather(sampling, return_exceptions=True)


async def _sample(pid: int, samples: list[Sample]) -> None:
    while True:
        members = [member for member in family(pid, processes()) if not member.is_java]
        share = sum(memory(member.pid).share for member in members)
        samples.append(Sample(time.perf_counter(), share / _MEGABYTE))
        await asyncio.sleep(_INTERVAL)
