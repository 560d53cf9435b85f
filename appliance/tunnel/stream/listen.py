"""Listen on a port, accept connections, and carry each in a task.

Connections are accepted here rather than by asyncio's server, for two reasons. A connection that ``admits`` refuses is
reset before anything is created for it, above all TLS, so a flood costs little. And when descriptors run out, the log
names the remedy in one line.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine

from appliance.errors import os_reason
from appliance.runtime.bind import port_refused
from appliance.settings.target import Target
from appliance.tunnel.limits.connection_limit import EXHAUSTED, FD_REMEDY
from appliance.tunnel.limits.counters import Counters
from appliance.tunnel.stream.channel import Channel
from appliance.tunnel.stream.tcp_channel import reset_when_closed

log = logging.getLogger("appliance.tunnel")

BACKLOG = 512
"""Most connections that wait to be accepted: all clients of a cluster come back at once after an outage."""

_BATCH = 64
"""Connections refused in a row before the event loop turns to other work."""

_BACK_OFF = 0.5
"""Pause after a failed accept, in seconds; new connections wait in the backlog."""


class Listener:
    """A bound port, from ``listen`` to ``close``."""

    def __init__(
        self, bound: socket.socket, make: Callable[[], asyncio.BaseProtocol], admits: Callable[[str], bool]
    ) -> None:
        bound.setblocking(False)
        host, port, *_ = bound.getsockname()
        self.port: int = port
        self._bound = bound
        self._make = make
        self._admits = admits
        self._address = str(Target(host, port))
        self._starving = False
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"tunnel listener {self._address}")

    @property
    def listening(self) -> bool:
        """True if connections are accepted, or will be when descriptors are free again."""
        return not self._task.done()

    async def close(self) -> None:
        """Close the port; accepted connections continue."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._bound.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._accept_all()
            except OSError as error:
                self._starve(error)
                await asyncio.sleep(_BACK_OFF)

    async def _accept_all(self) -> None:
        loop, refused = asyncio.get_running_loop(), 0
        while True:
            try:
                connection, (host, *_) = self._bound.accept()
            except BlockingIOError:
                self._recover()
                await self._readable()
                continue
            if self._admits(host):
                await loop.connect_accepted_socket(self._make, connection)
                continue
            reset_when_closed(connection)
            connection.close()
            refused += 1
            if refused % _BATCH == 0:
                await asyncio.sleep(0)

    async def _readable(self) -> None:
        """Wait for the next connection; asyncio's ``sock_accept`` would lose one that comes during a cancel."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._bound, arrived.set)
        try:
            await arrived.wait()
        finally:
            loop.remove_reader(self._bound)

    def _starve(self, error: OSError) -> None:
        if not self._starving:
            line = FD_REMEDY if error.errno in EXHAUSTED else "connections not accepted"
            log.error(line, extra={"fields": {"listen": self._address, "cause": os_reason(error)}})
        self._starving = True

    def _recover(self) -> None:
        """Log that the backlog has been accepted."""
        if self._starving:
            log.info("connections accepted again", extra={"fields": {"listen": self._address}})
        self._starving = False


async def listen(
    variable: str, at: Target, make: Callable[[], asyncio.BaseProtocol], admits: Callable[[str], bool] = lambda _: True
) -> Listener:
    """Listen on an address and port, 0 for any; every connection gets a protocol from ``make``.

    ``variable`` is the setting to name if the port cannot be had; ``admits`` is true if one more connection from an
    address may become one.
    """
    host = at.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with port_refused(variable, at):
        bound = socket.create_server((host, at.port), family=family, backlog=BACKLOG)
    return Listener(bound, make, admits)


class Connections:
    """The tasks that carry connections, from their start to the drain."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, channel: Channel, work: Coroutine[None, None, None], name: str) -> None:
        """Run ``work`` in a task; ``channel`` is reset when it is over."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        self.counters.open += 1
        # Not in the task: one that is cancelled before its first step would leave its channel open.
        task.add_done_callback(lambda _task: channel.reset())
        task.add_done_callback(self._ended)

    async def drain(self, seconds: float) -> None:
        """Wait until all have ended, and end those that have not after ``seconds``."""
        try:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=seconds)
        finally:
            remaining = list(self._tasks)
            for task in remaining:
                task.cancel()
            await asyncio.gather(*remaining, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.counters.open -= 1
        error = None if task.cancelled() else task.exception()
        if error:
            log.error("tunnel connection failed", exc_info=error, extra={"fields": {"task": task.get_name()}})
