"""An event loop whose clock jumps to the next thing that is due: pure code that waits is run without waiting."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Jumping(selectors.DefaultSelector):
    """Does not wait: the loop's clock moves on instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing is due any more: the test would hang"
        self.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Begins at 0."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Seconds, of which none has passed."""
        return self._jumping.now


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of work that needs nothing but time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
