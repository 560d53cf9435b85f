"""The time in which another copies once the active one is killed or stopped.

Two programs, of which one copies, and a few records a second. A signal goes to the active one: SIGKILL to all of its
processes, as when its machine loses power, or SIGTERM as ``docker-compose stop`` sends it. One that is stopped may copy
on for a while, so that a record of after the signal shows nothing. The hand-over ends with the longest pause in which
not every partition has got a newer record, from the signal until the first has ended and the flow goes on.
"""

import asyncio
import itertools
import random
import signal
import time
from collections.abc import Sequence
from typing import Protocol

from bench.lib.progress import progress
from bench.lib.steady_records import SteadyRecords
from testbed.process import OwnedProcess

KILL, STOP = signal.SIGKILL, signal.SIGTERM

_UNDISTURBED = (0.0, 3.0)
"""Seconds, by chance: a signal comes at any moment between two heartbeats."""

_STOP_SECONDS = 60.0


HandOvers = dict[signal.Signals, list[float]]
"""The seconds of each hand-over, by the signal."""


class Members(Protocol):
    """Two programs, of which one copies and the other stands by."""

    @property
    def processes(self) -> Sequence[OwnedProcess]:
        """Both of them."""

    async def active(self) -> OwnedProcess:
        """The one that copies."""

    async def replace(self, gone: OwnedProcess) -> None:
        """Start another in the place of one that has ended, and wait until it stands by."""


async def hand_overs(members: Members, flowing: SteadyRecords, times: int, deadline: float) -> HandOvers:
    """Kill the active one so many times, and then stop it as often, with a new standby each time."""
    seconds: HandOvers = {}
    for number in (KILL, STOP):
        seconds[number] = [await _hand_over(members, flowing, number, deadline) for _ in range(times)]
    return seconds


async def _hand_over(members: Members, flowing: SteadyRecords, number: signal.Signals, deadline: float) -> float:
    active = await members.active()
    (other,) = (each for each in members.processes if each is not active)
    await flowing.arrives(other, deadline)
    await asyncio.sleep(random.uniform(*_UNDISTURBED))
    await flowing.arrives(other, deadline)
    begun = time.perf_counter()
    await (active.kill() if number == KILL else active.stop(_STOP_SECONDS))
    await flowing.arrives(other, deadline)
    seconds = handed_over(flowing.arrivals, begun)
    progress("handed over", by=active.name, signal=number.name, seconds=f"{seconds:.2f}")
    await members.replace(active)
    return seconds


def handed_over(arrivals: Sequence[float], begun: float) -> float:
    """The seconds from ``begun`` to the end of the longest pause since then; ``arrivals`` has some of before."""
    first = next(index for index, at in enumerate(arrivals) if at >= begun)
    pauses = itertools.pairwise([begun, *arrivals[first:]])
    _, end = max(pauses, key=lambda pause: pause[1] - pause[0])
    return end - begun
