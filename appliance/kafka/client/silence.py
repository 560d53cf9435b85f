"""The silence of a connection's broker: TCP options that notice its loss, and the times when sending is possible.

Nothing is sent while the transport's buffer is full, while a login is repeated, or while the broker throttles the
connection: it says so in an answer, and reads nothing from the connection until that time has passed (KIP-219). None of
that time is its silence.
"""

import asyncio
import socket

_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}
_SILENCE = 30.0
"""A lost peer is noticed after half a minute, and a firewall sees an active flow."""

THROTTLED_MAX = 300.0
"""Seconds of an announced throttle that are waited for: then the broker is asked again, and its silence counts."""


class Sending:
    """One connection's silence, on the running event loop's clock; all waits end when it is ``over``."""

    def __init__(self) -> None:
        self._free = asyncio.Event()
        self._free.set()
        self._full = False
        self._over = False
        self._held = False
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
        """The end of ``patience`` with something that began at that time: later, when the broker throttles us."""
        return max(began, self._throttled_until) + patience

    def throttle(self, seconds: float) -> None:
        """Note the time for which the broker has announced to read nothing."""
        loop = asyncio.get_running_loop()
        until = loop.time() + min(seconds, THROTTLED_MAX)
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

    def hold(self, *, held: bool) -> None:
        """The connection belongs to a login, or to all requests again."""
        self._held = held
        self._settle()

    def end(self) -> None:
        """End all waits: the connection is gone."""
        self._over = True
        if self._throttled is not None:
            self._throttled.cancel()
        self._settle()

    def _throttled_no_more(self) -> None:
        self._throttled = None
        self._settle()

    def _settle(self) -> None:
        if self._over or not (self._full or self._held or self._throttled):
            self._free.set()
        else:
            self._free.clear()


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Probe a silent peer, and give up one that takes nothing."""
    probe(transport.get_extra_info("socket"))
    give_up_after(transport, 0)


def probe(connection: socket.socket) -> None:
    """Probe a silent peer of a connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def give_up_after(transport: asyncio.BaseTransport, throttled: float) -> None:
    """Delay the end of a connection whose live peer reads nothing (TCP_USER_TIMEOUT) by the announced seconds."""
    if hasattr(socket, "TCP_USER_TIMEOUT") and not transport.is_closing():
        connection: socket.socket = transport.get_extra_info("socket")
        patience = _SILENCE + min(throttled, THROTTLED_MAX)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(patience * 1000))
