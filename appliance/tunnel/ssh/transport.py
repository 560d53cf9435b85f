"""A channel of an SSH connection as a transport of asyncio's, so that code for TCP runs in it unchanged.

SSH has no reset: an abort closes the channel, and the SSH server closes its TCP connection to the tunnel server
normally. The TLS inside distinguishes a cut from a regular end.

A channel may have a window of bytes under way (RFC 4254, section 5.2), which bounds its throughput, a window for each
round trip, and the bytes that wait in this process for a client that does not read. The first channels get much, and
later ones less, since they share one line anyway::

    window = (WINDOWS_TOTAL - granted) / WINDOW_SHARE, WINDOW_MIN at least and WINDOW_MAX at most
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import asyncssh

from appliance.settings.target import Target

log = logging.getLogger("appliance.tunnel")


WINDOWS_TOTAL = 128 * 2**20
"""Sum of all windows in bytes, but for the WINDOW_MIN of each further channel."""

WINDOW_SHARE = 8
"""Number of parts of the remaining bytes, of which a channel gets one."""

WINDOW_MAX = 16 * 2**20
"""Largest window, in bytes: some 80 MB/s at a round trip of 100 ms, as asyncssh reopens it when half is used up."""

WINDOW_MIN = 64 * 2**10
"""Two packets of SSH (RFC 4253, section 6.1), or four records of TLS."""


class Windows:
    """Grants windows to channels, and takes them back."""

    def __init__(self) -> None:
        self.granted = 0

    def grant(self) -> int:
        """The window of one more channel, in bytes."""
        window = min(WINDOW_MAX, max(WINDOW_MIN, (WINDOWS_TOTAL - self.granted) // WINDOW_SHARE))
        self.granted += window
        return window

    def release(self, window: int) -> None:
        """Take back the window of a closed channel."""
        self.granted -= window


class SshTransport(asyncio.Transport):
    """The sending half of a channel, and the control of the receiving one.

    ``peer`` is the target to which the SSH server has connected it.
    """

    def __init__(self, channel: asyncssh.SSHTCPChannel[bytes], peer: Target) -> None:
        super().__init__({"peername": (peer.host, peer.port)})
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._paused = False

    def write(self, data: Any) -> None:
        """Send bytes as the server's window allows, and keep the rest."""
        self._channel.write(data)

    def write_eof(self) -> None:
        """End our direction once all is sent."""
        self._channel.write_eof()

    def is_closing(self) -> bool:
        """True if writing is no longer possible."""
        return self._channel.is_closing()

    def close(self) -> None:
        """Close when all is sent."""
        self._channel.close()

    def abort(self) -> None:
        """Close now."""
        self._channel.abort()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the bytes that may wait before the protocol is paused."""
        self._channel.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        """Stop delivering: the server's window will close."""
        self._paused = True
        self._channel.pause_reading()

    def resume_reading(self) -> None:
        """Deliver again, but soon: asyncssh would deliver what waits before it returns, unlike asyncio."""
        self._paused = False
        self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        if not self._paused:
            self._channel.resume_reading()


class ChannelSession(asyncssh.SSHTCPSession[bytes]):
    """Passes the events of asyncssh's channel on to a protocol of asyncio's.

    ``peer`` is the target to which the SSH server has connected it; ``closed`` is called at the channel's end.
    """

    def __init__(self, protocol: asyncio.BufferedProtocol, peer: Target, closed: Callable[[], None]) -> None:
        self._protocol = protocol
        self._peer = peer
        self._closed = closed
        self._channel: asyncssh.SSHTCPChannel[bytes]

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        """Called by asyncssh: the channel is open."""
        self._channel = chan
        self._protocol.connection_made(SshTransport(chan, self._peer))

    def data_received(self, data: bytes, datatype: int | None) -> None:  # noqa: ARG002
        """Called by asyncssh: the bytes of a packet have arrived."""
        rest = memoryview(data)
        try:
            while rest:
                buffer = memoryview(self._protocol.get_buffer(len(rest)))
                count = min(len(rest), len(buffer))
                buffer[:count] = rest[:count]
                self._protocol.buffer_updated(count)
                rest = rest[count:]
        except Exception:  # asyncssh would end the connection, and with it all channels
            log.exception("a channel of the SSH connection failed", extra={"fields": {"peer": str(self._peer)}})
            self._channel.abort()

    def eof_received(self) -> bool:
        """Called by asyncssh: the peer has ended its direction."""
        return bool(self._protocol.eof_received())

    def pause_writing(self) -> None:
        """Called by asyncssh: too much waits to be sent."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Called by asyncssh: little waits to be sent."""
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh: the channel is closed."""
        self._closed()
        self._protocol.connection_lost(exc)
