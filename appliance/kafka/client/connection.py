"""One connection to one broker: requests go out pipelined, answers come back in their order.

The broker answers the requests of a connection in order, so one missed deadline ends the connection for all: no answer
may be matched to the wrong request, and the lane has to resolve a doubtful Produce or EndTxn. A connection keeps the
deadline of each request itself, even if nobody waits for the answer: a silently dead connection is never used again.
"""

import asyncio
import collections
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, cast

from kio.static.protocol import RequestPayload

from appliance.clock import loop_seconds
from appliance.errors import ApplianceError, CertificateRefused, PeerError, Unreachable
from appliance.kafka.client.interface import TIMEOUTS, Timeouts, Transfer
from appliance.kafka.client.silence import Sending, give_up_after, keep_alive
from appliance.kafka.client.tls_refusal import refusal
from appliance.kafka.protocol.older import exchange
from appliance.kafka.protocol.wire import FRAME_MAX, SIZE, Answer, Exchange, Response, throttle_seconds
from appliance.settings.target import Target

_TOGETHER_BYTES = 64 * 1024
"""Read size until the frame's length is known, in bytes."""

_AHEAD_BYTES = 1024 * 1024
"""Least room for an announced frame, in bytes. More is made as bytes come: a length alone reserves no memory."""

_MANY = 8
_REST = 0.002
"""With more pending answers than this, the bytes of this many seconds are read together: each read costs."""

_WRITE_HIGH = 4 * 1024 * 1024


@dataclass(slots=True)
class _Pending(Generic[Answer]):
    correlation: int
    exchange: Exchange[Answer]
    answer: asyncio.Future[Answer]
    sent: float
    patience: float
    timer: asyncio.TimerHandle | None = None

    def settle(self, frame: bytearray) -> Answer:
        self._forget_time()
        answer = self.exchange.answer(frame, self.correlation)
        if not self.answer.done():
            self.answer.set_result(answer)
        return answer

    def fail(self, error: ApplianceError) -> None:
        self._forget_time()
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # an error that nobody waits for any more is not logged

    def _forget_time(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class BrokerConnection(asyncio.BufferedProtocol):
    """A connection that is open until it is closed or breaks; a broken one never recovers, but is replaced.

    ``offered`` holds the lowest and highest version of each API by its key, once the broker has listed them; ``newest``
    is the transfer of the newest answer. ``on_silence`` is called when the connection breaks by silence, with its
    beginning by the event loop's clock.
    """

    def __init__(self, target: Target, client_id: str, timeouts: Timeouts = TIMEOUTS) -> None:
        self.target = target
        self.timeouts = timeouts
        self.offered: Mapping[int, tuple[int, int]] = {}
        self.newest = Transfer(0.0, loop_seconds(), 0)
        self.on_silence: Callable[[float], None] = lambda _: None
        self._client_id = client_id
        self._transport: asyncio.Transport | None = None
        self._pending: collections.deque[_Pending[Any]] = collections.deque()
        self._correlation = 0
        self._sending = Sending()
        self._alone: asyncio.Task[Any] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._throttled = 0.0
        self._broken: ApplianceError | None = None
        self._together = bytearray(_TOGETHER_BYTES)
        self._frame: bytearray | None = None
        self._filled = self._size = 0
        self._began = 0.0

    @property
    def open(self) -> bool:
        """True while requests can still be sent."""
        return self._broken is None and self._transport is not None

    def idle_since(self, moment: float) -> bool:
        """True when nothing was sent or received since then, by the event loop's clock."""
        return self.newest.ended < moment and not self._pending

    async def call(
        self, request: RequestPayload, response_type: type[Response], timeout: float | None = None
    ) -> Response:
        """See ``Connection``; the request is sent in the version that the broker speaks."""
        return await self.ask(exchange(self.offered, request, response_type), timeout)

    async def ask(self, exchange: Exchange[Answer], timeout: float | None = None) -> Answer:
        """See ``Connection``."""
        return await (await self.send(exchange, timeout))

    async def send(self, exchange: Exchange[Answer], timeout: float | None = None) -> "asyncio.Future[Answer]":
        """See ``Connection``."""
        seconds = self.timeouts.answer if timeout is None else timeout
        free = self._sending.free or (self._alone is not None and self._alone is asyncio.current_task())
        if not free and not await self._sending.until_free(seconds):
            self._break(Unreachable(f"{self.target} did not read what it was sent within {seconds:g} s"))
        if self._broken is not None or self._transport is None:
            raise self._broken or Unreachable(f"the connection to {self.target} is not open")
        loop = asyncio.get_running_loop()
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        frame = exchange.frame(self._correlation, self._client_id)
        pending = _Pending(self._correlation, exchange, loop.create_future(), loop.time(), seconds)
        pending.timer = loop.call_later(seconds, self._overdue, pending)
        self._pending.append(pending)
        self._transport.write(frame)
        return pending.answer

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Let the requests of this task alone pass in the block; a broker takes no others while a login is repeated."""
        if not await self._sending.until_free(self.timeouts.answer):
            self._break(Unreachable(f"{self.target} did not read what it was sent"))
        self._alone = asyncio.current_task()
        self._sending.hold(held=True)
        try:
            yield
        finally:
            self._alone = None
            self._sending.hold(held=False)

    def while_open(self, task: asyncio.Task[None]) -> None:
        """Cancel the task when the connection ends."""
        self._tasks.append(task)
        if self._broken is not None:
            task.cancel()

    def _overdue(self, pending: _Pending[Any]) -> None:
        loop = asyncio.get_running_loop()
        deadline = self._sending.deadline(pending.sent, pending.patience)
        if loop.time() < deadline:
            pending.timer = loop.call_at(deadline, self._overdue, pending)
        else:
            request = f"a {pending.exchange.name} within {pending.patience:g} s"
            self._break(Unreachable(f"{self.target} did not answer {request}"))
            self.on_silence(loop_seconds() - pending.patience)

    async def close(self) -> None:
        """End the connection; waits for an answer end with Unreachable."""
        self.abandon("was closed")

    def abandon(self, reason: str) -> None:
        """End it at once; ``reason`` completes the sentence "the connection to a broker ..."."""
        self._break(Unreachable(f"the connection to {self.target} {reason}"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is there."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH)
        keep_alive(transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """The buffer for the next bytes: the frame that has begun, so that they need no copy, or the shared one."""
        if self._frame is None:
            return memoryview(self._together)[self._filled :]
        if self._filled == len(self._frame):
            self._frame += bytes(min(self._size - self._filled, max(self._filled, _AHEAD_BYTES)))
        return memoryview(self._frame)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come."""
        if self._broken is not None:
            return
        self._filled += nbytes
        if self._frame is None:
            self._split()
        elif self._filled == self._size:
            frame, self._frame, self._filled = self._frame, None, 0
            self._answered(frame)
        if self._frame is None and len(self._pending) > _MANY:
            self._rest()

    def _split(self) -> None:
        """Take the whole frames out of the received bytes, and begin the next."""
        data, end = self._together, self._filled
        at = self._filled = 0
        while end - at >= SIZE.size and self._broken is None:
            (size,) = SIZE.unpack_from(data, at)
            if not SIZE.size <= size <= FRAME_MAX:
                self._break(PeerError(f"{self.target} does not speak Kafka's protocol on this port: frame size {size}"))
                return
            self._began = loop_seconds()
            frame = data[at + SIZE.size : min(at + SIZE.size + size, end)]
            at += SIZE.size + size
            if at > end:
                self._frame, self._filled, self._size = frame, len(frame), size
                return
            self._answered(frame)
        self._filled = end - at
        data[: end - at] = data[at:end]

    def _rest(self) -> None:
        assert self._transport is not None
        self._transport.pause_reading()
        asyncio.get_running_loop().call_later(_REST, self._read_on)

    def _read_on(self) -> None:
        if self._broken is None and self._transport is not None:
            self._transport.resume_reading()

    def _answered(self, frame: bytearray) -> None:
        if not self._pending:
            self._break(PeerError(f"{self.target} answered a request that was not sent"))
            return
        self.newest = Transfer(self._began, loop_seconds(), len(frame))
        pending = self._pending.popleft()
        try:
            self._throttle(throttle_seconds(pending.settle(frame)))
        except PeerError as error:
            self._unread(pending, type(error)(f"{self.target}: {error}"), error)
        except ApplianceError as error:
            pending.fail(error)
        except Exception as error:  # the caller waits for this answer, now without a deadline: it must not hang
            text = f"{self.target} sent an unreadable answer to a {pending.exchange.name}: {error!r:.200}"
            self._unread(pending, PeerError(text), error)

    def _unread(self, pending: _Pending[Any], error: PeerError, cause: Exception) -> None:
        error.__cause__ = cause
        pending.fail(error)
        self._break(error)

    def eof_received(self) -> bool:
        """The broker has closed its side; so do we. With TLS, answers that came just before may be lost."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone."""
        if isinstance(exc, ssl.SSLError) and isinstance(refused := refusal(self.target, exc), CertificateRefused):
            self._break(refused)
        reason = f": {exc}" if exc else ""
        self._break(Unreachable(f"{self.target} closed the connection{reason}"))

    def _throttle(self, seconds: float) -> None:
        self._sending.throttle(seconds)
        if seconds != self._throttled and self._transport is not None:
            self._throttled = seconds
            give_up_after(self._transport, seconds)

    def pause_writing(self) -> None:
        """The transport's buffer is full."""
        self._sending.fill(full=True)

    def resume_writing(self) -> None:
        """The transport's buffer has room again."""
        self._sending.fill(full=False)

    def _break(self, error: ApplianceError) -> None:
        if self._broken is not None:
            return
        self._broken = error
        self._sending.end()
        for task in self._tasks:
            task.cancel()
        for pending in self._pending:
            pending.fail(error)
        self._pending.clear()
        if self._transport is not None:
            self._transport.abort()
