"""Threads and tasks that never outlive their owner."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Reached = Callable[[int], None]
"""A callback for progress; called from any thread."""

_Result = TypeVar("_Result")


async def in_thread(work: Callable[[threading.Event], _Result]) -> _Result:
    """Run blocking ``work`` in a thread; on cancellation, set its event and wait until it returns."""
    stopping = threading.Event()
    task = asyncio.create_task(asyncio.to_thread(work, stopping), name="thread")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stopping.set()
        await asyncio.gather(task, return_exceptions=True)
        raise


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Run all of ``work``, even if cancelled meanwhile."""
    task = asyncio.create_task(work, name="to the end")
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def together(**work: Coroutine[Any, Any, object]) -> None:
    """Run all at once, each in a task of its name; the first failure ends the others, and is raised unchanged."""
    try:
        async with asyncio.TaskGroup() as group:
            for name, coroutine in work.items():
                group.create_task(coroutine, name=name)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures


async def watched(work: Coroutine[Any, Any, _Result], watch: Coroutine[Any, Any, None]) -> _Result:
    """The result of ``work``, unless ``watch`` fails first; both have ended when this call returns."""
    working, watching = asyncio.create_task(work, name="work"), asyncio.create_task(watch, name="watch")
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
        return await working
    finally:
        await end(working)
        await end(watching)


async def failure_of(task: "asyncio.Task[Any]") -> None:
    """Wait until the task has ended, and raise its failure, if it failed."""
    await asyncio.wait((task,))
    task.result()


async def end(task: "asyncio.Task[Any]") -> None:
    """Cancel the task, unless it has ended, and wait until it has, however it ends."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
