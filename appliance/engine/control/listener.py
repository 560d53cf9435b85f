"""The listener of the control connections: each must send a hello in time, and their number before it is bounded."""

import asyncio
import logging
import secrets
import socket
from pathlib import Path

from appliance.engine.control.assignment import Hello, Question, decode_hello
from appliance.engine.control.connection import Stream, accepted, listening_socket, read_line
from appliance.errors import PeerError
from appliance.settings.target import Target

log = logging.getLogger("appliance.replicator")

STRANGERS_MAX = 512
"""Most connections without a hello; a job of more tasks raises it."""

HELLO_SECONDS = 10.0
"""Timeout of TLS and the hello, in seconds."""

_BACK_OFF = 0.5
"""Pause after a failed accept, in seconds."""


class ControlListener:
    """Accepts connections, and passes each of this run that says hello to ``serve``.

    Among too many silent connections, the newest replaces the oldest: a task needs milliseconds, so a stranger that
    holds connections, or opens one after the other, keeps no task out.

    It listens ``at`` a file, which only our user can open, or at a port, where TLS requires the ``token`` of the run,
    by default a new one. ``subject`` is the setting of what listens, for the log.
    """

    def __init__(
        self,
        at: Path | Target,
        strangers_max: int = STRANGERS_MAX,
        hello_seconds: float = HELLO_SECONDS,
        token: str = "",
        subject: str = "SPARK_DRIVER_PORT",
    ) -> None:
        self.token = token or secrets.token_urlsafe(32)
        self.strangers_max = strangers_max
        self._at = at
        self._hello_seconds = hello_seconds
        self._subject = subject
        self._bound: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._strangers: dict[asyncio.Task[None], None] = {}
        self._warned = False

    @property
    def address(self) -> Path | Target:
        """The listening address."""
        if isinstance(self._at, Path):
            return self._at
        assert self._bound is not None
        host, port, *_ = self._bound.getsockname()
        return Target(str(host), int(port))

    async def serve(self, hello: Hello | Question, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to a task; the connection ends with it.

        Raises:
            PeerError, OSError: its line is invalid, or it is gone.
        """
        raise NotImplementedError

    def start(self) -> None:
        """Listen.

        Raises:
            SettingsError: the port cannot be had.
        """
        self._bound = listening_socket(self._at, self._subject)
        self._accepting = asyncio.create_task(self._accept(self._bound), name="control-listener")

    async def close(self) -> None:
        """Stop listening, and end every connection; written bytes are still sent."""
        ending = [task for task in (self._accepting, *self._connections) if task is not None]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        if self._bound is not None:
            self._bound.close()

    async def _accept(self, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(bound)
            except OSError as error:
                log.error("tasks are not accepted", extra={"fields": {"cause": str(error)}})
                await asyncio.sleep(_BACK_OFF)
                continue
            if len(self._strangers) >= self.strangers_max:
                self._forget(oldest := next(iter(self._strangers)))
                oldest.cancel()
            task = loop.create_task(self._connected(connection), name="control")
            self._connections.add(task)
            self._strangers[task] = None
            task.add_done_callback(self._connections.discard)
            task.add_done_callback(self._forget)
            await asyncio.sleep(0)  # it begins now, so that it closes the connection in any case

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._strangers.pop(task, None)

    async def _connected(self, connection: socket.socket) -> None:
        stream: Stream | None = None
        try:
            try:
                async with asyncio.timeout(self._hello_seconds):
                    stream = await accepted(connection, self.token)
                    hello = decode_hello(await read_line(stream[0]))
            except (PeerError, OSError) as error:
                self._refused(error)
                return
            if task := asyncio.current_task():
                self._forget(task)
            self._warned = False
            await self.serve(hello, *stream)
        except (PeerError, OSError) as error:
            log.warning("a task's connection ended", extra={"fields": {"cause": str(error)}})
        finally:
            if stream is None:
                connection.close()
            else:
                stream[1].close()

    def _refused(self, error: Exception) -> None:
        """Log the first refusal of a series."""
        log.log(
            logging.DEBUG if self._warned else logging.WARNING,
            f"a connection to {self._subject} that is no task's",
            extra={"fields": {"cause": str(error) or "silence"}},
        )
        self._warned = True
