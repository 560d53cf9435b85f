"""Blocking clients beside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def in_own_thread(work: Callable[[], None]) -> "asyncio.Future[None]":
    """Run it in a thread of its own: those of ``asyncio.to_thread`` are few, and what lasts would use them up."""
    executor = ThreadPoolExecutor(1)
    running = asyncio.get_running_loop().run_in_executor(executor, work)
    executor.shutdown(wait=False)
    return running
