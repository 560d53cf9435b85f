"""The bytes of records that a task may read from the source now: a token bucket, which a bound of 0 leaves open.

It fills up to a second's worth. An answer is paid for once it has come, since nobody knows before how large it is: what
it brings beyond the bucket is a debt, and nothing is asked for until it is paid.
"""

import asyncio
from collections.abc import Callable

_SECONDS = 1.0
_MOMENT = 0.001
_WORTH_ASKING = 64 * 1024
"""Least bytes worth a Fetch, where a second brings more."""


def _clock() -> float:
    return asyncio.get_running_loop().time()


class Allowance:
    """One task's; ``clock`` gives seconds, by default the event loop's."""

    def __init__(self, clock: Callable[[], float] = _clock) -> None:
        self._clock = clock
        self._rate = 0
        self._held = 0.0
        self._filled = 0.0  # nothing fills it before it is bound
        self._changed = asyncio.Event()

    def bound(self, bytes_per_second: int) -> None:
        """From now on so much; 0: as much as comes. A debt stays one."""
        self._fill()
        if not self._rate:
            self._held = bytes_per_second * _SECONDS
        self._rate = bytes_per_second
        self._held = min(self._held, bytes_per_second * _SECONDS)
        self._changed.set()

    @property
    def pause(self) -> float:
        """Seconds until it is worth asking."""
        self._fill()
        if not self._rate:
            return 0.0
        pause = (min(_WORTH_ASKING, self._rate * _SECONDS) - self._held) / self._rate
        return pause if pause > _MOMENT else 0.0

    async def left(self, wanted: int) -> int:
        """Wait until it is worth asking, then how many of the ``wanted`` bytes may be asked for."""
        while pause := self.pause:
            self._changed.clear()
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                continue
        return min(wanted, max(1, int(self._held))) if self._rate else wanted

    def spend(self, size: int) -> None:
        """Count bytes that have come."""
        self._fill()
        if self._rate:
            self._held -= size

    def _fill(self) -> None:
        now = self._clock()
        self._held = min(self._held + (now - self._filled) * self._rate, self._rate * _SECONDS)
        self._filled = now


def share(bytes_per_second: int, tasks: int) -> int:
    """Share of a link's bound for each of its tasks; never 0 where there is a bound."""
    return max(1, bytes_per_second // max(1, tasks)) if bytes_per_second else 0
