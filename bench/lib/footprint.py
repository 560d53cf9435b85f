"""The cost of a running program, separately for its JVM and its other processes: now, and while it copies."""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from bench.lib.procfs import Process, family, memory, processes
from testbed.tasks import end

_MEGABYTE = 1e6
_INTERVAL = 0.25
_MOMENT = 0.1


@dataclass(frozen=True, slots=True)
class Cost:
    """Memory in megabytes (10^6 bytes), and processor time over a while, in per cent of a core.

    ``memory`` is the sum of each process's highest share; a page of several processes counts once. They need not have
    reached their highest shares at the same time, so this is an upper bound.
    """

    memory: float
    processor: float

    def __str__(self) -> str:
        return f"{self.memory:.0f}MB,{self.processor:.1f}%"

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.memory + other.memory, self.processor + other.processor)


@dataclass(frozen=True, slots=True)
class Footprint:
    """The JVMs, and all other processes."""

    java: Cost
    others: Cost

    @property
    def total(self) -> Cost:
        """The cost of all processes together."""
        return self.java + self.others


async def footprint(pid: int, seconds: float) -> Footprint:
    """Measure the process and its descendants over the next ``seconds``."""

    def members(java: bool) -> list[Process]:
        return [member for member in family(pid, processes()) if member.is_java is java]

    kinds = (functools.partial(members, java) for java in (True, False))
    java, others = await asyncio.gather(*(_cost(kind, seconds) for kind in kinds))
    return Footprint(java, others)


async def cost_of(pid: int, seconds: float) -> Cost:
    """Measure one process alone over the next ``seconds``."""
    return await _cost(lambda: [each for each in processes() if each.pid == pid], seconds)


async def _cost(members: Callable[[], Sequence[Process]], seconds: float) -> Cost:
    clock = asyncio.get_running_loop().time
    before, begun = _busy(members()), clock()
    await asyncio.sleep(seconds)
    busy, elapsed = _busy(present := members()) - before, clock() - begun
    return Cost(sum(memory(member.pid).highest_share for member in present) / _MEGABYTE, 100 * busy / elapsed)


def _busy(members: Sequence[Process]) -> float:
    return sum(member.cpu_seconds for member in members)


@dataclass(frozen=True, slots=True)
class Spent:
    """Memory in megabytes, as ``footprint`` has it, and seconds of processor time."""

    memory: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.memory:.0f}MB,{self.seconds:.1f}s"


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

    async def between(self, begin: float, until: float) -> tuple[Spent, Spent]:
        """The spending of Java and of the other processes between two times; their memory is the highest until now."""
        first, last = at(self.readings, begin), at(self.readings, until)
        held = await footprint(self.pid, _MOMENT)
        return (
            Spent(held.java.memory, last.java - first.java),
            Spent(held.others.memory, last.others - first.others),
        )


def at(readings: Sequence[Reading], when: float) -> Reading:
    """The last reading until ``when``, or the first one."""
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
        await end(taking)


async def _read(taken: Spending) -> None:
    while True:
        members, now = family(taken.pid, processes()), time.perf_counter()
        java = _busy([member for member in members if member.is_java])
        taken.readings.append(Reading(now, java, _busy(members) - java))
        await asyncio.sleep(_INTERVAL)
