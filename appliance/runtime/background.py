"""Background tasks, in which a failure ends nothing else, and work that a stop or a deadline cuts off."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from appliance.errors import SettingsError

Work = Callable[[], Awaitable[None]]

RETRY_SECONDS = 5.0
"""Seconds before a failed task starts again."""


@contextlib.asynccontextmanager
async def in_background(log: logging.Logger, failure: str, **work: Work) -> AsyncIterator[None]:
    """Run each ``work`` in a task of its name while the block runs; one that ends starts again after some seconds.

    Args:
        log: gets each failure once; repetitions of the same one are left out.
        failure: the line for an unexpected error, with ``{}`` for the name of the work.
    """
    tasks = [
        asyncio.create_task(_forever(one, log, failure.format(name)), name=f"{log.name} {name}")
        for name, one in work.items()
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _forever(work: Work, log: logging.Logger, failure: str) -> None:
    logged = ""
    while True:
        try:
            await work()
            logged = ""
        except SettingsError as error:
            if str(error) != logged:
                log.warning(str(error))
            logged = str(error)
        except Exception as error:  # an unexpected error here must not end the main work
            if repr(error) != logged:
                log.exception(failure, extra={"fields": {}})
            logged = repr(error)
        await asyncio.sleep(RETRY_SECONDS)


Result = TypeVar("Result")


async def unless_stopped(stopping: asyncio.Event, work: Coroutine[Any, Any, Result]) -> Result | None:
    """The result of the work; None when it was cut off, since ``stopping`` was set first."""
    working = asyncio.create_task(work, name="unless-stopped")
    stopped = asyncio.create_task(stopping.wait(), name="stopping")
    try:
        await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        for task in (working, stopped):
            task.cancel()
        await asyncio.gather(working, stopped, return_exceptions=True)


async def ends_within(seconds: float, work: Coroutine[Any, Any, object]) -> bool:
    """True if the work ends in that time; else it is cancelled.

    In a task that is being cancelled, ``asyncio.timeout`` of Python 3.11.2 raises no TimeoutError (cases 503 and 541).
    """
    working = asyncio.create_task(work, name="ends-within")
    try:
        await asyncio.wait([working], timeout=seconds)
        if working.done():
            working.result()
        return working.done()
    finally:
        working.cancel()  # no effect if it is done


async def ended(process: asyncio.subprocess.Process, seconds: float = 10.0) -> None:
    """Wait for the end of a process that was asked to end; kill it after that time."""
    if not await ends_within(seconds, process.wait()):
        process.kill()
        await process.wait()
