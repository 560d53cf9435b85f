"""Background tasks: they run until they are cancelled, and a failure in one ends nothing else."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from appliance.errors import SettingsError

Work = Callable[[], Awaitable[None]]

_RETRY = 5.0
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
        await asyncio.sleep(_RETRY)


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
