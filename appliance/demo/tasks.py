"""Work beside the event loop, and side by side: always owned, never left behind."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def in_thread(work: Callable[[threading.Event], _Result]) -> _Result:
    """Runs blocking ``work`` in a thread; when we are cancelled, sets its event and waits for it to return."""
    stopping = threading.Event()
    task = asyncio.create_task(asyncio.to_thread(work, stopping), name="thread")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stopping.set()
        await asyncio.gather(task, return_exceptions=True)
        raise


async def together(**work: Coroutine[Any, Any, object]) -> None:
    """Runs all at once, each in a task of that name; the first that fails ends the others, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for name, coroutine in work.items():
                group.create_task(coroutine, name=name)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures


async def end(task: asyncio.Task[None]) -> None:
    """Cancels the task and waits until it has ended, however it ends."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
