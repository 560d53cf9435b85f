"""A bounded wait for the end of something, which holds in a task that is being cancelled too."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def ends_within(seconds: float, work: Coroutine[Any, Any, object]) -> bool:
    """True if the work ends in that time; else it is cancelled.

    In a task that is being cancelled, ``asyncio.timeout`` of Python 3.11.2 raises no TimeoutError (cases 503 and 541).

    Raises:
        Exception: that of the work.
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
