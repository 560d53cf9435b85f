"""An event loop that picks the next ready callback at random, from one seed, on a clock that jumps.

Each callback belongs to a *life*, a process that may be killed at any moment: what a callback begins belongs to the
same life, and of a life that has ended nothing runs any more, not even a ``finally``: as with SIGKILL.
"""

import asyncio
import contextlib
import heapq
import itertools
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from appliance.clock import SOURCE

_CLOSINGS = 3


class Life:
    """A process that runs until it is killed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.answered: Callable[[Any, Any, Any], None] | None = None
        """Is told of each answer that comes: the brokers, the request, the answer."""
        self.trap: Callable[[str, bool], None] | None = None
        """Is told of each request at a broker by its name, before it is carried out and after that; may kill."""


class Handle:
    """A callback that waits for its turn; asyncio's own, as far as it is used."""

    __slots__ = ("_when", "args", "callback", "life")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], life: Life, when: float) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.life = life
        self._when = when

    def cancel(self) -> None:
        """Never run it."""
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        return self.callback is None

    def when(self) -> float:
        return self._when


class SimulatedLoop(asyncio.AbstractEventLoop):
    """The loop of one history; ``chance`` decides which of the ready callbacks is next."""

    def __init__(self, chance: random.Random) -> None:
        self.world = self.life = Life("world")
        self.steps = 0
        self.defects: list[dict[str, Any]] = []
        self._random = chance.random
        self._now = 0.0
        self._ready: list[Handle] = []
        self._timers: list[tuple[float, int, Handle]] = []
        self._numbers = itertools.count()
        self._tasks: list[asyncio.Task[Any]] = []

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.defects.append(context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:  # type: ignore[override]
        task = asyncio.Task(coro, loop=self, **options)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.append(task)  # what is killed must not be closed by the garbage collector, which would run it
        return task

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Any = None) -> Handle:  # type: ignore[override]  # noqa: ARG002
        handle = Handle(callback, args, self.life, self._now)
        self._ready.append(handle)
        return handle

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Handle:  # type: ignore[override]  # noqa: ARG002
        return self.call_at(self._now + delay, callback, *args)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Handle:  # type: ignore[override]  # noqa: ARG002
        return self.at(when, self.life, callback, *args)

    def at(self, when: float, life: Life, callback: Callable[..., object], *args: Any) -> Handle:
        """Run it then, as a part of that life."""
        handle = Handle(callback, args, life, when)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def start(self, life: Life, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task of that life."""
        before, self.life = self.life, life
        try:
            return self.create_task(coro)
        finally:
            self.life = before

    def close(self) -> None:
        """Let go of all tasks: their ``finally`` runs now, when it has no effect on anything any more."""
        for task in self._tasks:
            coroutine = task.get_coro()
            for _ in range(_CLOSINGS):
                with contextlib.suppress(RuntimeError):  # it awaits something while it is closed
                    coroutine.close()  # type: ignore[union-attr]

    def run_while(self, wanted: Callable[[], bool], seldom: int = 0) -> None:
        """Run as long as ``wanted`` says so before a step; before one of 2^n with ``seldom`` of 2^n - 1."""
        ready, timers, chance, pop = self._ready, self._timers, self._random, heapq.heappop
        asyncio._set_running_loop(self)
        try:
            while self.steps & seldom or wanted():
                while timers and (not ready or timers[0][0] <= self._now):
                    when, _, handle = pop(timers)
                    if handle.callback is not None and handle.life.alive:
                        if when > self._now:
                            self._now = when
                        ready.append(handle)
                if not ready:
                    raise AssertionError("nothing is due any more: it would hang for ever")
                at = int(chance() * len(ready))
                handle = ready[at]
                ready[at] = ready[-1]
                ready.pop()
                if handle.callback is not None and handle.life.alive:
                    self.life = handle.life
                    self.steps += 1
                    handle.callback(*handle.args)
        finally:
            self.life = self.world
            asyncio._set_running_loop(None)


@contextlib.contextmanager
def time_of_day(loop: SimulatedLoop, epoch: float) -> Iterator[None]:
    """Within the block, the time of day is that of the loop, after ``epoch``."""
    before, SOURCE.of_day = SOURCE.of_day, lambda: epoch + loop.time()
    try:
        yield
    finally:
        SOURCE.of_day = before
