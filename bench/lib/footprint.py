"""The cost of a running program, separately for its JVM and its other processes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bench.lib.procfs import Process, family, memory, processes

_MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """Memory in megabytes (10^6 bytes), and processor time over a while, in per cent of a core.

    ``memory`` is the sum of each process's highest share; a page of several processes counts once. They need not have
    reached their highest shares at the same time, so this is an upper bound.
    """

    memory: float
    processor: float

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
    clock = asyncio.get_running_loop().time
    before, begun = family(pid, processes()), clock()
    await asyncio.sleep(seconds)
    after, elapsed = family(pid, processes()), clock() - begun
    java = _cost(_java(before, True), _java(after, True), elapsed)
    return Footprint(java, others=_cost(_java(before, False), _java(after, False), elapsed))


async def cost_of(pid: int, seconds: float) -> Cost:
    """Measure one process alone over the next ``seconds``."""
    clock = asyncio.get_running_loop().time
    before, begun = [each for each in processes() if each.pid == pid], clock()
    await asyncio.sleep(seconds)
    return _cost(before, [each for each in processes() if each.pid == pid], clock() - begun)


def _java(members: Sequence[Process], wanted: bool) -> list[Process]:
    return [member for member in members if member.is_java is wanted]


def _cost(before: Sequence[Process], after: Sequence[Process], seconds: float) -> Cost:
    highest = sum(memory(member.pid).highest_share for member in after) / _MEGABYTE
    busy = sum(member.cpu_seconds for member in after) - sum(member.cpu_seconds for member in before)
    return Cost(highest, processor=100 * busy / seconds)
