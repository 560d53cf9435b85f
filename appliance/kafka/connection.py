"""One connection to one broker: requests go out pipelined, answers come back in their order.

The broker answers the requests of a connection in the order in which they came, so a deadline that passes for one
ends the connection for all: nothing may be matched to the wrong request, and a doubtful Produce or EndTxn is the
lane's to resolve.
"""

import asyncio
import collections
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, cast

from kio.static.protocol import RequestPayload

from appliance.errors import ApplianceError, IdentityRefused, PeerError, Unreachable
from appliance.kafka.older import exchange
from appliance.kafka.wire import FRAME_MAX, SIZE, Answer, Exchange, Response
from appliance.settings.target import Target

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Finds the addresses of a host name; raises NameUnresolved or Unreachable."""

_TOGETHER_BYTES = 64 * 1024
"""Up to so many are read at once before it is known what they are."""

_MANY = 8
_REST = 0.002
"""While more than so many answers are due, what comes within so many seconds is read together: each look costs."""

CONNECT_TIMEOUT = 10.0
REQUEST_TIMEOUT = 30.0


class Transfer(NamedTuple):
    """When an answer began to come, and when it had come, by the monotonic clock; and its size."""

    began: float
    ended: float
    bytes: int


@dataclass(slots=True)
class _Pending(Generic[Answer]):
    correlation: int
    exchange: Exchange[Answer]
    answer: asyncio.Future[Answer]

    def settle(self, frame: bytearray) -> None:
        answer = self.exchange.answer(frame, self.correlation)
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: ApplianceError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # an answer that nobody waits for any more is no news


class BrokerConnection(asyncio.BufferedProtocol):
    """A connection that is open until it is closed or breaks; a broken one never recovers, a new one is made.

    ``offered`` holds the lowest and highest version of each API by its key, once the broker has told them; ``newest``
    is how the newest answer came.
    """

    def __init__(self, target: Target, client_id: str) -> None:
        self.target = target
        self.offered: Mapping[int, tuple[int, int]] = {}
        self.newest = Transfer(0.0, 0.0, 0)
        self._client_id = client_id
        self._transport: asyncio.Transport | None = None
        self._pending: collections.deque[_Pending[Any]] = collections.deque()
        self._correlation = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self._broken: ApplianceError | None = None
        self._together = bytearray(_TOGETHER_BYTES)
        self._frame: bytearray | None = None
        self._filled = 0
        self._began = 0.0

    @property
    def open(self) -> bool:
        """Whether requests can still be sent."""
        return self._broken is None and self._transport is not None

    def offers(self, api_key: int, version: int) -> bool:
        """Whether the broker has said that it speaks this version of an API."""
        low, high = self.offered.get(api_key, (0, -1))
        return low <= version <= high

    async def call(
        self, request: RequestPayload, response_type: type[Response], timeout: float = REQUEST_TIMEOUT
    ) -> Response:
        """Send a request, in the version that is spoken to the broker, and wait for its answer; raises as ``ask``."""
        return await self.ask(exchange(self.offered, request, response_type), timeout)

    async def ask(self, exchange: Exchange[Answer], timeout: float = REQUEST_TIMEOUT) -> Answer:
        """Send a request and wait for its answer.

        Raises:
            Unreachable: the connection broke, or the answer did not come within ``timeout`` seconds.
            PeerError: the answer is unreadable.
        """
        answer = await self.send(exchange)
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError as error:
            silence = f"{self.target} did not answer a {exchange.name} within {timeout:g} s"
            self._break(Unreachable(silence))
            raise Unreachable(silence) from error

    async def send(self, exchange: Exchange[Answer]) -> "asyncio.Future[Answer]":
        """Send a request, in order with the ones before it, and give the future of its answer."""
        await self._writable.wait()
        if self._broken is not None or self._transport is None:
            raise self._broken or Unreachable(f"the connection to {self.target} is not open")
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending.append(_Pending(self._correlation, exchange, answer))
        self._transport.write(exchange.frame(self._correlation, self._client_id))
        return answer

    async def close(self) -> None:
        """End the connection; whoever waits for an answer gets Unreachable."""
        self._break(Unreachable(f"the connection to {self.target} was closed"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is there."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by inheritance
        self._transport.set_write_buffer_limits(high=4 * 1024 * 1024)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Where the next bytes go: into the frame that has begun, so that they need not be copied, or all together."""
        return memoryview(self._together if self._frame is None else self._frame)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come."""
        if self._broken is not None:
            return
        self._filled += nbytes
        if self._frame is None:
            self._split()
        elif self._filled == len(self._frame):
            frame, self._frame, self._filled = self._frame, None, 0
            self._answered(frame)
        if self._frame is None and len(self._pending) > _MANY:
            self._rest()

    def _split(self) -> None:
        """Take the whole frames out of what has come together, and begin the next."""
        data, end = self._together, self._filled
        at = self._filled = 0
        while end - at >= SIZE.size and self._broken is None:
            (size,) = SIZE.unpack_from(data, at)
            if not SIZE.size <= size <= FRAME_MAX:
                self._break(PeerError(f"{self.target} does not speak Kafka's protocol on this port: frame size {size}"))
                return
            self._began = time.monotonic()
            frame = data[at + SIZE.size : min(at + SIZE.size + size, end)]
            at += SIZE.size + size
            if at > end:
                self._filled = len(frame)
                self._frame = frame.ljust(size, b"\0")
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
        self.newest = Transfer(self._began, time.monotonic(), len(frame))
        pending = self._pending.popleft()
        try:
            pending.settle(frame)
        except PeerError as error:
            pending.fail(error)
            self._break(error)
        except ApplianceError as error:
            pending.fail(error)

    def eof_received(self) -> bool:
        """The broker has closed its side; so do we. By TLS answers that came just before may be lost with it."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone."""
        reason = f": {exc}" if exc else ""
        self._break(Unreachable(f"{self.target} closed the connection{reason}"))

    def pause_writing(self) -> None:
        """The transport's buffer is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The transport's buffer has room again."""
        self._writable.set()

    def _break(self, error: ApplianceError) -> None:
        if self._broken is not None:
            return
        self._broken = error
        self._writable.set()
        for pending in self._pending:
            pending.fail(error)
        self._pending.clear()
        if self._transport is not None:
            self._transport.abort()


async def connect(
    target: Target, resolve: Resolve, client_id: str, tls: ssl.SSLContext | None, timeout: float = CONNECT_TIMEOUT
) -> BrokerConnection:
    """A connection to ``target``, the first of its addresses that answers; TLS checks the target's own name.

    Raises:
        NameUnresolved: the resolver has no address.
        IdentityRefused: the certificate is not the target's, or nobody trusted signed it.
        PeerError: what answers does not speak TLS.
        Unreachable: no address answers.
    """
    loop = asyncio.get_running_loop()
    failure: Exception | None = None
    for address in await resolve(target.host):
        try:
            async with asyncio.timeout(timeout):
                _, connection = await loop.create_connection(
                    lambda: BrokerConnection(target, client_id),
                    address,
                    target.port,
                    ssl=tls,
                    server_hostname=target.host if tls else None,
                )
                return connection
        except ssl.SSLCertVerificationError as error:
            raise IdentityRefused(f"the certificate of {target} is not accepted: {error.verify_message}") from error
        except ssl.SSLEOFError as error:
            failure = error
        except ssl.SSLError as error:
            raise PeerError(f"{target} does not speak TLS on this port: {error.reason}") from error
        except (OSError, TimeoutError) as error:
            failure = error
    raise Unreachable(f"cannot connect to {target}: {_reason(failure)}") from failure


def _reason(failure: Exception | None) -> str:
    if isinstance(failure, TimeoutError):
        return "no answer in time"
    if isinstance(failure, ConnectionResetError):
        return "connection reset"
    return str(failure)
