"""The bytes that a process may read from the source now: by the memory that its buffers take, and by the second."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.replicator.read.buffer import Buffer

_BYTES = 16 * 1024 * 1024
_ANSWERS = 5
"""When a partition's answer has come, there is room for another one of that size, that will come meanwhile."""

LEAST = 64 * 1024
"""Least bytes of a partition worth a Fetch."""

_MOMENT = 0.001
_WORTH_ASKING = 64 * 1024
"""Least bytes worth a Fetch, where a second brings more."""


def _clock() -> float:
    return asyncio.get_running_loop().time()


class Allowance:
    """A token bucket, which a bound of 0 leaves open; ``clock`` gives seconds, by default the event loop's.

    It fills up to a second's worth. An answer is paid for once it has come, since nobody knows before how large it is:
    what it brings beyond the bucket is a debt, and nothing is asked for until it is paid.
    """

    def __init__(self, clock: Callable[[], float] = _clock) -> None:
        self._clock = clock
        self._rate = 0
        self._held = 0.0
        self._filled = 0.0  # nothing fills it before it is bound
        self._changed = asyncio.Event()

    def bound(self, bytes_per_second: int) -> None:
        """Set a new rate; 0: no bound. A debt stays."""
        self._fill()
        if not self._rate:
            self._held = bytes_per_second
        self._rate = bytes_per_second
        self._held = min(self._held, bytes_per_second)
        self._changed.set()

    @property
    def pause(self) -> float:
        """Seconds until it is worth asking."""
        self._fill()
        if not self._rate:
            return 0.0
        pause = (min(_WORTH_ASKING, self._rate) - self._held) / self._rate
        return pause if pause > _MOMENT else 0.0

    async def left(self, wanted: int) -> int:
        """Wait until it is worth asking, then how many of the ``wanted`` bytes may be asked for."""
        while pause := self.pause:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()
        return min(wanted, max(1, int(self._held))) if self._rate else wanted

    def spend(self, size: int) -> None:
        """Count bytes that have come."""
        self._fill()
        if self._rate:
            self._held -= size

    def _fill(self) -> None:
        now = self._clock()
        self._held = min(self._held + (now - self._filled) * self._rate, self._rate)
        self._filled = now


@dataclass(slots=True)
class BufferBudget:
    """``bytes`` is what all buffers hold now, ``limit``, by and large, what they may; ``allowance`` bounds the rate."""

    bytes: int = 0
    limit: int = _BYTES
    allowance: Allowance = field(default_factory=Allowance)

    def stretch(self, response_bytes: int) -> None:
        """Make room for answers of this size, which the way to a leader far away takes."""
        self.limit = max(self.limit, _ANSWERS * response_bytes)

    @property
    def left(self) -> int:
        """Bytes that the next answer may bring."""
        return max(self.limit - self.bytes, LEAST)

    def room(self, buffer: Buffer) -> int:
        """Bytes that may be fetched into a buffer; 0 when it is full.

        One buffer may hold half of what is left of the whole (the dynamic threshold of shared-memory switches,
        Choudhury and Hahne 1998): a partition alone gets much, many get their shares, and what one lane cannot get rid
        of leaves room for the others. An empty buffer may always be filled.
        """
        room = (self.limit - self.bytes) // 2 - buffer.bytes
        if room < LEAST:
            return 0 if buffer.chunks else LEAST
        return room


def share(bytes_per_second: int, tasks: int) -> int:
    """Share of a link's bound for each of its tasks; never 0 where there is a bound."""
    return max(1, bytes_per_second // max(1, tasks)) if bytes_per_second else 0
