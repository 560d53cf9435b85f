"""Event loops that stall at random, as on a busy machine.

A test that depends on timing fails here sooner or later, with a known name and seed.
"""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

_CHANCE = 0.01
"""Probability that a step of a task stalls."""
_SECONDS = (0.03, 0.06, 0.12, 0.25, 0.5)
_SHARE_MAX = 2.0
"""Maximum stalled seconds for each other second, so that a test of many steps ends."""
_FREE = 0.5
"""Stalled seconds that do not count, so that a test of few steps also stalls."""


def stalling(loop: type[asyncio.AbstractEventLoop], seed: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """A factory of stalling loops of this class.

    Args:
        loop: asyncio's or uvloop's.
        seed: the seed of the random stalls.
    """
    return type("Stalling", (_Stalling, loop), {"chance": random.Random(seed)})


class _Stalling(asyncio.AbstractEventLoop):
    """A mixin before the class of a loop."""

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
