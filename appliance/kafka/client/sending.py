"""When a connection may be sent on, and from when on its broker is silent.

Not while the transport's buffer is full, and not while the broker throttles the connection: it says so in an answer,
and reads nothing from the connection until that time has passed (KIP-219). None of that time is the broker's silence.
"""

import asyncio


class Sending:
    """One connection's, on the running event loop's clock; when it is ``over``, nobody waits any more."""

    def __init__(self) -> None:
        self._free = asyncio.Event()
        self._free.set()
        self._full = False
        self._over = False
        self._throttled: asyncio.TimerHandle | None = None
        self._throttled_until = 0.0

    @property
    def free(self) -> bool:
        """True when something may be sent now."""
        return self._free.is_set()

    async def until_free(self, patience: float) -> bool:
        """Wait until something may be sent; False when the broker was silent for ``patience`` seconds meanwhile."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not self.free:
            try:
                async with asyncio.timeout_at(self.deadline(began, patience)):
                    await self._free.wait()
            except TimeoutError:
                if loop.time() >= self.deadline(began, patience):
                    return False
        return True

    def deadline(self, began: float, patience: float) -> float:
        """When ``patience`` with something that began at that time is over: later, when the broker throttles us."""
        return max(began, self._throttled_until) + patience

    def throttle(self, seconds: float) -> None:
        """The broker has said that it reads nothing for so long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if seconds <= 0 or self._over or until <= self._throttled_until:
            return
        if self._throttled is not None:
            self._throttled.cancel()
        self._throttled, self._throttled_until = loop.call_at(until, self._throttled_no_more), until
        self._settle()

    def fill(self, *, full: bool) -> None:
        """The transport's buffer is full, or has room again."""
        self._full = full
        self._settle()

    def end(self) -> None:
        """The connection is no more: whoever waits is to find that out."""
        self._over = True
        if self._throttled is not None:
            self._throttled.cancel()
        self._settle()

    def _throttled_no_more(self) -> None:
        self._throttled = None
        self._settle()

    def _settle(self) -> None:
        if self._over or not (self._full or self._throttled):
            self._free.set()
        else:
            self._free.clear()
