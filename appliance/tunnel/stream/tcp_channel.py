"""A channel over TCP, or over another transport of asyncio's.

It uses asyncio's protocols rather than its streams: a stream copies every byte twice more, and one direction of TLS can
be ended only below streams (see ``tls_channel``).

All channels of the process share one budget of bytes that wait to be sent (see ``memory``): a congested channel stops
its source, so that one read waits at most beyond its mark, and reads become smaller when much waits.
The first ``FREE`` channels have a mark and all of the kernel's own buffer, which spares eight busy ones a fifth of the
processor time; the others are congested as soon as the kernel, which takes little ahead, does not take all.
"""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from appliance.errors import NameUnresolved, OutOfDescriptors, TimedOut, Unreachable, os_reason
from appliance.runtime.background import ends_within
from appliance.tunnel.limits.connection_limit import EXHAUSTED
from appliance.tunnel.stream.channel import Channel
from appliance.tunnel.stream.memory import READ_BUDGET, READ_SIZE_MAX, memory_of, moved_by

FIRST_READ_SIZE = 16 * 1024
"""Read size before the relay, in bytes: a conversation with the peer is shorter."""

READ_BUFFER = memoryview(bytearray(READ_SIZE_MAX))
"""The read buffer of every channel of the process, used one after the other on one event loop.

One will do because a read is used up before the next: TLS decrypts or encrypts it at once, an inbox copies it. A
buffer for each read would have to be cleared each time, and an idle connection would keep one.
"""

FREE = 128
"""Channels that may be open before new ones are bounded more closely."""

_WRITE_HIGH = 256 * 1024
"""Bytes that may wait on one of the first channels before it is congested."""

_UNSENT_MAX = 256 * 1024
"""Bytes that the kernel takes beyond those under way, of the others; its own bound is some MiB for each socket."""

open_channels: set["TcpChannel"] = set()
"""The channels of this process with an established connection and a socket of their own."""

_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A dead peer is noticed after a minute of silence.

TCP_USER_TIMEOUT would notice it sooner while bytes are under way, but Linux also applies it to a peer that lives and
only does not read, and a Kafka client that has paused is just that.
"""


class TcpChannel(Channel, asyncio.BufferedProtocol):
    """A TCP connection.

    ``waiting`` are the bytes that are kept here until they can be sent.
    ``made`` is called when the connection is established.
    """

    def __init__(self, made: Callable[["TcpChannel"], None] | None = None) -> None:
        super().__init__()
        self._made = made
        self._transport: asyncio.Transport
        self._peer_done = asyncio.Event()
        self.waiting = 0

    @property
    def peer(self) -> str:
        """The other end's address, for the log."""
        host, port, *_ = self._transport.get_extra_info("peername") or ("unknown", 0)
        return f"{host}:{port}"

    @property
    def memory(self) -> int:
        """The bytes of memory that it holds, here and in the kernel."""
        return self.waiting + memory_of(self._transport.get_extra_info("socket"))

    @property
    def moved(self) -> int:
        """The bytes that the peer has taken or sent."""
        return moved_by(self._transport.get_extra_info("socket"))

    def send(self, data: bytes | memoryview) -> None:
        """Send ``data``; heed ``congested``. A view is copied, because the transport may keep it."""
        if not self._transport.is_closing():
            self._transport.write(bytes(data))
            if self.congested:
                # All of it: what is sent in part is kept as a whole.
                self._wait_for(self.waiting + len(data))

    def send_eof(self) -> None:
        """End our direction once all is sent; the peer's continues."""
        if not self._transport.is_closing():
            self._transport.write_eof()

    def pause(self) -> None:
        """Stop reading: the peer will be slowed down by TCP."""
        self._transport.pause_reading()

    def resume(self) -> None:
        """Read again, unless all has been read."""
        if not self._peer_done.is_set():
            self._transport.resume_reading()

    def close(self) -> None:
        """Close when all is sent; for a connection whose two directions have ended."""
        self._transport.close()

    async def finish(self, seconds: float) -> None:
        """End our direction after a last message, drop what still comes, close with the peer, or after ``seconds``.

        Closing at once would not do: bytes of the peer's that are still under way would be answered by a reset, which
        discards the last message (a TLS alert, an answer) before the peer has read it.
        """
        self.send_eof()
        self._lost = True
        self.resume()
        with contextlib.suppress(OSError):
            if not self._transport.is_closing():
                self._transport.write_eof()
            await ends_within(seconds, self._peer_done.wait())
        self._transport.abort()

    def reset(self) -> None:
        """Close now, by a TCP reset, so that the peer cannot take it for a regular end."""
        if not self._transport.is_closing():
            connection = self._transport.get_extra_info("socket")
            if connection is not None:  # a channel inside SSH has none
                with contextlib.suppress(OSError):
                    reset_when_closed(connection)
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the connection is established."""
        self._transport = cast("asyncio.Transport", transport)
        few = len(open_channels) < FREE
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH if few else 0)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            open_channels.add(self)
            _tune(connection)
            if not few:
                _bound_unsent(connection)
        if self._made:
            self._made(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Called by asyncio: the buffer to read to."""
        size = FIRST_READ_SIZE if self._receiver is self._inbox else READ_BUDGET.read_size
        return READ_BUFFER if size == READ_SIZE_MAX else READ_BUFFER[:size]

    def buffer_updated(self, nbytes: int) -> None:
        """Called by asyncio: this many bytes were read."""
        if not self._lost:
            self._arrived(READ_BUFFER[:nbytes])

    def eof_received(self) -> bool:
        """Called by asyncio: TCP's end of the peer's direction. True: ours stays open."""
        self._peer_done.set()
        if not self._lost:
            self._tcp_ended()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the socket is closed."""
        self._peer_done.set()
        self._closed.set()
        self._wait_for(0)
        open_channels.discard(self)
        reason = os.strerror(exc.errno) if isinstance(exc, OSError) and exc.errno else "closed"
        self._fail(Unreachable(f"connection lost: {reason}"))

    def pause_writing(self) -> None:
        """Called by asyncio: more waits to be written than the mark."""
        self.congested = True

    def resume_writing(self) -> None:
        """Called by asyncio: little waits to be written, or nothing."""
        self.congested = False
        self._wait_for(0)
        self._receiver.relieved()

    def _wait_for(self, size: int) -> None:
        READ_BUDGET.waiting += size - self.waiting
        self.waiting = size

    def _arrived(self, data: memoryview) -> None:
        self._deliver(data)

    def _tcp_ended(self) -> None:
        self._end()


def reset_when_closed(connection: socket.socket) -> None:
    """Have the close of ``connection`` be a TCP reset, which leaves nothing behind in this kernel."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _tune(connection: socket.socket) -> None:
    """TCP_NODELAY, for latency, and keepalive, for the peers that vanish."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _bound_unsent(connection: socket.socket) -> None:
    """Limit the bytes that the kernel takes ahead of the peer."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_MAX)


_Kind = TypeVar("_Kind", bound=TcpChannel)


async def dial(hosts: Sequence[str], port: int, seconds: float, make: Callable[[], _Kind]) -> _Kind:
    """Connect to the first of ``hosts`` that answers, all of them within ``seconds``.

    Each host gets an equal share of the remaining time, so that a silent one does not use up that of the others.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    failure = Unreachable("no address to dial")
    for hosts_left, host in zip(range(len(hosts), 0, -1), hosts, strict=True):
        try:
            return await _dial_one(host, port, (end - clock()) / hosts_left, make)
        except Unreachable as error:
            failure = error
    raise failure


async def _dial_one(host: str, port: int, seconds: float, make: Callable[[], _Kind]) -> _Kind:
    try:
        async with asyncio.timeout(seconds):
            _, channel = await asyncio.get_running_loop().create_connection(make, host, port)
    except TimeoutError as error:
        raise TimedOut(f"no answer from {host} port {port} within {seconds:.1f} s") from error
    except socket.gaierror as error:
        raise NameUnresolved(f"no address for {host}: {error.strerror}") from error
    except OSError as error:
        kind = OutOfDescriptors if error.errno in EXHAUSTED else Unreachable
        raise kind(f"{host} port {port}: {os_reason(error).lower()}") from error
    return channel
