"""The connections of one end: each has a task, and each task an owner."""

import asyncio
import logging
from collections.abc import Coroutine

from appliance.tunnel.limits.counters import Counters
from appliance.tunnel.stream.channel import Channel

log = logging.getLogger("appliance.tunnel")


class Connections:
    """The tasks that carry connections, from their start to the drain.

    Args:
        counters: count them.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, channel: Channel, work: Coroutine[None, None, None], name: str) -> None:
        """Run ``work`` in a task; ``channel`` is reset when it is over."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        self._counters.open += 1
        # Not in the task: one that is cancelled before its first step would leave its channel open.
        task.add_done_callback(lambda _task: channel.reset())
        task.add_done_callback(self._ended)

    async def drain(self, seconds: float) -> None:
        """Wait until all have ended, and end those that have not after ``seconds``."""
        try:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=seconds)
        finally:
            remaining = list(self._tasks)
            for task in remaining:
                task.cancel()
            await asyncio.gather(*remaining, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._counters.open -= 1
        error = None if task.cancelled() else task.exception()
        if error:
            log.error("tunnel connection failed", exc_info=error, extra={"fields": {"task": task.get_name()}})
