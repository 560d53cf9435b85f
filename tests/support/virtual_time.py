"""An event loop whose clock jumps to the next due event, so that pure code that waits runs without waiting."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Jumping(selectors.DefaultSelector):
    """A selector that does not wait; the loop's clock advances instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing is due any more: the test would hang"
        self.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock starts at 0."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """The loop's time in seconds, without real waiting."""
        return self._jumping.now


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of work that needs only time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
