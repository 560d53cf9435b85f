"""Work that a stop cuts off."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

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
