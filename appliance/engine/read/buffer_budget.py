"""The bytes that a process may read from the source now: by rate, its buffers' memory, and a leader's distance."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.clock import loop_seconds
from appliance.engine.read.buffer import Buffer
from appliance.kafka.client.interface import Transfer

_BYTES = 16 * 1024 * 1024
_ANSWERS = 5
"""Least budget in bytes, and in answers: with one answer of a partition received, there is room for its next one."""

LEAST = 64 * 1024
"""Least bytes of a partition worth a Fetch."""

_MOMENT = 0.001
_WORTH_ASKING = 64 * 1024
"""Least bytes worth a Fetch, where a second brings more."""

_NEAR_RESPONSE = 8 * 1024 * 1024
_NEAR_PARTITION = 2 * 1024 * 1024
"""Largest answer, and a partition's share, of a nearby leader, in bytes: larger ones cost memory only."""

_NEAR = 0.02
_SURE = 5
"""Number of answers that distinguish a long distance from a broker that was busy or had just started."""

_FAR_RESPONSE = 32 * 1024 * 1024
_TIMES = 8
"""Time of an answer's transfer, as a multiple of the latency."""

_SLOW = 1.0
"""Longest transfer of an answer of the nearby size, in seconds: it delays everything else of this leader."""

_TELLING = 256 * 1024
"""Smallest answer that shows the rate, in bytes."""


class Allowance:
    """A token bucket, which a bound of 0 leaves open; ``clock`` gives seconds, by default the event loop's.

    It fills up to a second's worth. An answer is paid for once it has come, since its size is unknown before: bytes
    beyond the bucket are a debt, and no Fetch is sent until it is paid.
    """

    def __init__(self, clock: Callable[[], float] = loop_seconds) -> None:
        self._clock = clock
        self._rate = 0
        self._permitted_bytes = 0.0
        self._refill_time = 0.0  # it is empty until it has a bound
        self._changed = asyncio.Event()

    def bound(self, bytes_per_second: int) -> None:
        """Set a new rate; 0 is unbounded. A debt stays."""
        self._fill()
        if not self._rate:
            self._permitted_bytes = bytes_per_second
        self._rate = bytes_per_second
        self._permitted_bytes = min(self._permitted_bytes, bytes_per_second)
        self._changed.set()

    @property
    def pause(self) -> float:
        """Seconds until a Fetch is worthwhile."""
        self._fill()
        if not self._rate:
            return 0.0
        pause = (min(_WORTH_ASKING, self._rate) - self._permitted_bytes) / self._rate
        return pause if pause > _MOMENT else 0.0

    async def remaining(self, wanted: int) -> int:
        """Wait until a Fetch is worthwhile; the number of the ``wanted`` bytes that it may ask for."""
        while pause := self.pause:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()
        return min(wanted, max(1, int(self._permitted_bytes))) if self._rate else wanted

    def spend(self, size: int) -> None:
        """Count received bytes."""
        self._fill()
        if self._rate:
            self._permitted_bytes -= size

    def _fill(self) -> None:
        now = self._clock()
        self._permitted_bytes = min(self._permitted_bytes + (now - self._refill_time) * self._rate, self._rate)
        self._refill_time = now


@dataclass(slots=True)
class BufferBudget:
    """``bytes`` is the size of all buffers now, ``limit`` their approximate bound; ``allowance`` bounds the rate."""

    bytes: int = 0
    limit: int = _BYTES
    allowance: Allowance = field(default_factory=Allowance)

    def make_room(self, response_bytes: int) -> None:
        """Make room for answers of this size, as a distant leader needs."""
        self.limit = max(self.limit, _ANSWERS * response_bytes)

    @property
    def remaining(self) -> int:
        """Bytes that the next answer may bring."""
        return max(self.limit - self.bytes, LEAST)

    def room(self, buffer: Buffer) -> int:
        """Bytes that may be fetched into a buffer; 0 when it is full.

        One buffer may hold half of the free budget (the dynamic threshold of shared-memory switches, Choudhury and
        Hahne 1998): a single partition gets much, many get their shares, and a stuck lane leaves room for the others.
        An empty buffer may always be filled.
        """
        room = (self.limit - self.bytes) // 2 - buffer.bytes
        if room < LEAST:
            return 0 if buffer.chunks else LEAST
        return room


@dataclass(slots=True)
class FetchSizer:
    """The size of a Fetch: enough to keep the connection to a leader busy, as only one is in flight.

    It follows the answers: their least latency in seconds, and newest rate in bytes a second.
    """

    _latency: float = 0.0
    _rate: float = 1024 * 1024
    _active: int = 1
    _answers: int = 0

    def note_answer(self, sent: float, transfer: Transfer, active: int) -> None:
        """A Fetch that was sent at that time was answered with records of ``active`` partitions."""
        latency = transfer.began - sent
        self._latency = min(self._latency, latency) if self._answers else latency
        self._answers += 1
        self._active = max(active, 1)
        seconds = max(transfer.ended - transfer.began, 1e-6)
        if transfer.bytes >= _TELLING:
            self._rate += (transfer.bytes / seconds - self._rate) / 2

    @property
    def far(self) -> bool:
        """True when waiting for the leader takes a large part of the time."""
        return self._answers >= _SURE and self._latency > _NEAR

    @property
    def response_bytes(self) -> int:
        """Bytes to ask for."""
        enough = _TIMES * self._latency * self._rate if self.far else 0.0
        return int(min(_FAR_RESPONSE, max(enough, min(_NEAR_RESPONSE, _SLOW * self._rate))))

    @property
    def partition_bytes(self) -> int:
        """Bytes to ask for of one partition: all, when only one has records."""
        return max(_NEAR_PARTITION, self.response_bytes // self._active) if self.far else _NEAR_PARTITION


def share(bytes_per_second: int, tasks: int) -> int:
    """Share of a link's bound for each of its tasks; never 0 where there is a bound."""
    return max(1, bytes_per_second // max(1, tasks)) if bytes_per_second else 0
