"""A fault with two writers where one is allowed (invariant B): the older is fenced, and says so in one line.

That it writes nothing is for the checker to say, as ever. Two replicators are in ``standbys``.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import psutil

from tests.faults.injection.switches import CrashPoint, arm
from tests.faults.run import Run
from tests.faults.supervised import Supervised, has_ended
from tests.support.link import lines
from tests.support.patience import PATIENCE

_CUT_OFF = "was started again by Spark: an earlier try of it is cut off"
_MIDWAY = (CrashPoint.PARTITIONS_ADDED, CrashPoint.PARTLY_PRODUCED, CrashPoint.POSITIONS_PRODUCED)
_POLL = 0.1


@contextlib.asynccontextmanager
async def task_tried_twice(run: Run, chance: random.Random) -> AsyncIterator[None]:
    """Spark tries a task again whose first try sleeps within a transaction, and wakes up when its lane is another's."""
    note = run.directory / "double"
    note.unlink(missing_ok=True)
    said = _times_said(run.replicator, _CUT_OFF)
    arm(run.directory, chance.choice(_MIDWAY), note)
    async with asyncio.timeout(PATIENCE):
        older = await _stopped(note)
    await run.goes_on()
    yield
    assert _times_said(run.replicator, _CUT_OFF) == said + 1
    older.resume()
    async with asyncio.timeout(PATIENCE):
        while not has_ended(older):
            await asyncio.sleep(_POLL)


def _times_said(replicator: Supervised, what: str) -> int:
    return sum(what in line for line in lines(replicator.process))


async def _stopped(note: Path) -> psutil.Process:
    """The process that has left its id there, when it has stopped."""
    while (process := _noted(note)) is None or process.status() != psutil.STATUS_STOPPED:
        await asyncio.sleep(_POLL)
    return process


def _noted(note: Path) -> psutil.Process | None:
    return psutil.Process(int(text)) if note.exists() and (text := note.read_text()) else None
