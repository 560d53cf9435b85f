"""The limit of connections that one end carries at once, a short queue for a slot, and the file descriptors."""

import asyncio
import contextlib
import errno
import logging
import resource
from collections.abc import AsyncIterator, Iterator

from appliance.errors import TimedOut, Unreachable
from appliance.tunnel.limits.counters import Counters, Refusal
from appliance.tunnel.limits.pending_handshakes import PENDING_MAX, PENDING_OF_ONE_MAX

log = logging.getLogger("appliance.tunnel")

WAITING_MAX = 256
"""Most connections that wait for a slot, or of the server's, have none yet; one more is refused at once."""


class ConnectionLimit:
    """Gives each connection a slot, in the order in which they ask. ``seconds`` are the longest wait for a slot."""

    def __init__(self, limit: int, seconds: float, counters: Counters) -> None:
        self._limit = limit
        self._seconds = seconds
        self._counters = counters
        self._free = asyncio.Semaphore(limit)
        self._present = 0
        self._taken = 0
        self._waiting = 0
        self._full = False

    @contextlib.contextmanager
    def room(self) -> Iterator[None]:
        """Count one connection, with a slot or still without, while the block runs."""
        if self._present >= self._limit + WAITING_MAX:
            raise self._too_many()
        self._present += 1
        try:
            yield
        finally:
            self._present -= 1

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot while the block runs."""
        await self._wait()
        self._taken += 1
        self._log_state()
        try:
            yield
        finally:
            self._taken -= 1
            self._free.release()

    async def _wait(self) -> None:
        if self._free.locked() and self._waiting >= WAITING_MAX:
            raise self._too_many()
        self._waiting += 1
        self._log_state()
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError as error:
            self._counters.refused[Refusal.FULL] += 1
            raise TimedOut(f"{self._in_use()} for {self._seconds:g} s") from error
        finally:
            self._waiting -= 1

    def _too_many(self) -> Unreachable:
        self._counters.refused[Refusal.FULL] += 1
        return Unreachable(f"{self._in_use()}, and {WAITING_MAX} wait for one")

    def _in_use(self) -> str:
        return f"TUNNEL_CONNECTIONS_MAX={self._limit} connections are in use"

    def _log_state(self) -> None:
        """Log when the slots have run out, and when a tenth of them is free again."""
        fields = {"connections": self._taken, "limit": self._limit}
        if not self._full and self._free.locked() and self._waiting:
            self._full = True
            log.warning(
                "all connections are in use, new ones wait: raise TUNNEL_CONNECTIONS_MAX", extra={"fields": fields}
            )
        elif self._full and 10 * self._taken <= 9 * self._limit and not self._waiting:
            self._full = False
            log.info("connections are free again", extra={"fields": fields})


EXHAUSTED = (errno.EMFILE, errno.ENFILE)
"""The error codes of a process, and of a system, without a free descriptor."""

_CURE = "raise the limit (ulimit -n; LimitNOFILE in systemd; ulimits in compose) or lower TUNNEL_CONNECTIONS_MAX"

FD_REMEDY = f"out of file descriptors: {_CURE}"

_OWN = 64
"""Descriptors for Python, the log, DNS and the status page."""


def needed_descriptors(connections_max: int) -> int:
    """The most descriptors that an end needs: two for each connection, one for each that waits or is unproved."""
    return 2 * connections_max + WAITING_MAX + PENDING_MAX + PENDING_OF_ONE_MAX + _OWN


def raise_fd_limit(connections_max: int) -> None:
    """Raise the process's limit as far as permitted, and warn if that is too low for all its connections."""
    limit, needed = _raise_limit(), needed_descriptors(connections_max)
    if limit != resource.RLIM_INFINITY and limit < needed:
        fields = {"limit": limit, "needed": needed, "connections": connections_max}
        log.warning(f"too few file descriptors for all connections: {_CURE}", extra={"fields": fields})


def _raise_limit() -> int:
    """Raise the soft limit to the hard one, which needs no privilege; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft  # a system whose hard limit is above what its kernel grants
    return hard
