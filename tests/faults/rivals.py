"""Faults with two writers where one is allowed (invariant B): the older is fenced, and says so in one line.

That it writes nothing is for the checker to say, as ever.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import psutil

from tests.faults.injection.switches import CrashPoint, arm
from tests.faults.run import RECOVERY, Run
from tests.faults.supervised import Supervised, has_ended
from tests.support.link import lines
from tests.support.patience import PATIENCE

_FENCED = 1
"""The exit code of a replicator that another has taken over from."""

_STOPS = "this one stops, a link has one"
_TAKES = "takes the lanes from an earlier run"
_CUT_OFF = "was started again by Spark: an earlier try of it is cut off"
_MIDWAY = (CrashPoint.PARTITIONS_ADDED, CrashPoint.PARTLY_PRODUCED, CrashPoint.POSITIONS_PRODUCED)
_POLL = 0.1


@contextlib.asynccontextmanager
async def taken_over(run: Run, _: random.Random) -> AsyncIterator[None]:
    """Another replicator of the link starts."""
    older = await run.replaced()
    yield
    await _is_fenced(older)
    assert _times_said(run.replicator, _TAKES) == 1


@contextlib.asynccontextmanager
async def taken_over_while_paused(run: Run, _: random.Random) -> AsyncIterator[None]:
    """The older sleeps, perhaps within a transaction, until another has all of its lanes; that takes longer than its
    transaction's timeout.
    """
    run.replicator.pause()
    older = await run.replaced()
    await run.goes_on()
    yield
    older.resume()
    await _is_fenced(older)


@contextlib.asynccontextmanager
async def started_at_once(run: Run, _: random.Random) -> AsyncIterator[None]:
    """Two replicators start, and nobody starts them again: one of them goes on."""
    await run.replicator.release()
    await run.replicator.process.stop()
    rivals = [run.supervised(), run.supervised()]
    for rival in rivals:
        await rival.start()
        await rival.release()
    try:
        async with asyncio.timeout(RECOVERY):
            while all(rival.process.running for rival in rivals):
                await asyncio.sleep(_POLL)
        rivals.sort(key=lambda rival: rival.process.running)
        older, run.replicator = rivals
        await _is_fenced(older)
        await run.goes_on()
        assert run.replicator.process.running
        run.replicator.keep()
        yield
    except BaseException:
        for rival in rivals:
            await rival.close()
        raise


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


async def _is_fenced(older: Supervised) -> None:
    try:
        assert await older.process.wait(RECOVERY) == _FENCED
        assert _times_said(older, _STOPS) == 1
        assert older.defects() == []
    finally:
        await older.close()


def _times_said(replicator: Supervised, what: str) -> int:
    return sum(what in line for line in lines(replicator.process))


async def _stopped(note: Path) -> psutil.Process:
    """The process that has left its id there, when it has stopped."""
    while (process := _noted(note)) is None or process.status() != psutil.STATUS_STOPPED:
        await asyncio.sleep(_POLL)
    return process


def _noted(note: Path) -> psutil.Process | None:
    return psutil.Process(int(text)) if note.exists() and (text := note.read_text()) else None
