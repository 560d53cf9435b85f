"""The memory and the processor time of a program while it copies, separately for its JVM and its other processes."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from bench.lib.footprint import footprint
from bench.lib.procfs import family, processes

_INTERVAL = 0.25
_MOMENT = 0.1


@dataclass(frozen=True, slots=True)
class Spent:
    """Memory in megabytes, as ``footprint`` has it, and seconds of processor time."""

    memory: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds of processor time until ``at``, a time of ``time.perf_counter``."""

    at: float
    java: float
    others: float


@dataclass(slots=True)
class Spending:
    """The readings of a program, four times a second."""

    pid: int
    readings: list[Reading] = field(default_factory=list)

    async def between(self, begin: float, end: float) -> tuple[Spent, Spent]:
        """The spending of Java and of the other processes between two times; their memory is the highest until now."""
        first, last = at(self.readings, begin), at(self.readings, end)
        held = await footprint(self.pid, _MOMENT)
        return (
            Spent(held.java.memory, last.java - first.java),
            Spent(held.others.memory, last.others - first.others),
        )


def at(readings: Sequence[Reading], when: float) -> Reading:
    """The last reading until ``when``, or the first one.

    Raises:
        ValueError: there is none.
    """
    if not readings:
        raise ValueError("no reading was taken")
    return next((reading for reading in reversed(readings) if reading.at <= when), readings[0])


@contextlib.asynccontextmanager
async def spending(pid: int) -> AsyncIterator[Spending]:
    """Take readings of the process and its descendants while the block runs."""
    taken = Spending(pid)
    taking = asyncio.create_task(_read(taken), name="spending")
    try:
        yield taken
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)


async def _read(taken: Spending) -> None:
    while True:
        members, now = family(taken.pid, processes()), time.perf_counter()
        java = sum(member.cpu_seconds for member in members if member.is_java)
        taken.readings.append(Reading(now, java, sum(member.cpu_seconds for member in members) - java))
        await asyncio.sleep(_INTERVAL)
