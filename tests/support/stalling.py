"""Event loops that stand still at random, as they do where a machine has other things to do.

A test that passes only at a certain pace fails here sooner or later, and its name and the seed are known then.
"""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

_CHANCE = 0.01
"""Of each step of a task."""
_SECONDS = (0.03, 0.06, 0.12, 0.25, 0.5)
_SHARE_MAX = 2.0
"""Stalled seconds for each other one, so that a test of many steps comes to its end."""
_FREE = 0.5
"""Stalled seconds that are not counted, so that a test of few steps has its share too."""


def stalling(loop: type[asyncio.AbstractEventLoop], seed: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """A factory of loops of this class that stall.

    Args:
        loop: asyncio's or uvloop's.
        seed: what chance begins with.
    """
    return type("Stalling", (_Stalling, loop), {"chance": random.Random(seed)})


class _Stalling(asyncio.AbstractEventLoop):
    """Goes before the class of a loop that runs."""

    chance: random.Random

    def __init__(self) -> None:
        self._begun, self._stalled = time.monotonic(), 0.0
        super().__init__()

    def call_soon(self, *arguments: Any, **keywords: Any) -> asyncio.Handle:
        if self.chance.random() < _CHANCE:
            self._stall()
        return super().call_soon(*arguments, **keywords)

    def _stall(self) -> None:
        others = time.monotonic() - self._begun - self._stalled
        if self._stalled < _FREE + _SHARE_MAX * others:
            seconds = self.chance.choice(_SECONDS)
            time.sleep(seconds)
            self._stalled += seconds
