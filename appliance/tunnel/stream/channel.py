"""A connection as the relay uses it: bytes arrive and leave, and each direction ends on its own.

A channel delivers to its receiver. At first that is its own inbox, from which ``receive`` takes the bytes of a
conversation with the peer (the CONNECT head): reading pauses after every delivery, so that the inbox holds one read at
most. Then ``attach`` replaces the inbox by the relay, and bytes pass from callback to callback without a task or a
queue.

The carrier of the bytes is a subclass's: a transport of asyncio's (``tcp_channel``), with TLS inside it
(``tls_channel``).
"""

import abc
import asyncio
from typing import Protocol

from appliance.errors import ApplianceError


class Receiver(Protocol):
    """The events of a channel, for its user."""

    def received(self, data: bytes | memoryview) -> None:
        """These bytes have arrived; a view is the receiver's until it returns, then others are written over it."""

    def ended(self) -> None:
        """The peer has ended its direction; ours continues."""

    def lost(self, error: ApplianceError) -> None:
        """The connection is no longer usable."""

    def relieved(self) -> None:
        """The channel is no longer congested."""


class _Inbox:
    """Keeps the bytes that arrive until ``receive`` takes them."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.end = False
        self.error: ApplianceError | None = None
        self.changed = asyncio.Event()

    def received(self, data: bytes | memoryview) -> None:
        self.data += data
        self.changed.set()

    def ended(self) -> None:
        self.end = True
        self.changed.set()

    def lost(self, error: ApplianceError) -> None:
        self.error = error
        self.changed.set()

    def relieved(self) -> None:
        pass


class Channel(abc.ABC):
    """A connection in both directions.

    ``congested`` is true while so much waits to be sent that its source should stop.
    """

    def __init__(self) -> None:
        self._inbox = _Inbox()
        self._receiver: Receiver = self._inbox
        self._end_delivered = False
        self._lost = False
        self._closed = asyncio.Event()
        self.congested = False

    @property
    @abc.abstractmethod
    def peer(self) -> str:
        """The other end's address, for the log."""

    async def receive(self) -> bytes:
        """The next bytes; none when the peer has ended its direction."""
        inbox = self._inbox
        while not inbox.data and not inbox.end:
            if inbox.error:
                raise inbox.error
            self.resume()
            inbox.changed.clear()
            await inbox.changed.wait()
        data = bytes(inbox.data)
        inbox.data.clear()
        return data

    def unread(self, data: bytes) -> None:
        """Put back, before anything else, what ``receive`` gave but the conversation did not need."""
        self._inbox.data[:0] = data

    def attach(self, receiver: Receiver) -> None:
        """Deliver to ``receiver`` from now on, starting with bytes that have already arrived."""
        inbox, self._receiver = self._inbox, receiver
        self.resume()  # first, because the receiver may pause what it is given too much of
        if inbox.data:
            receiver.received(bytes(inbox.data))
        if inbox.end:
            receiver.ended()
        if inbox.error:
            receiver.lost(inbox.error)

    @abc.abstractmethod
    def send(self, data: bytes | memoryview) -> None:
        """Send ``data``; heed ``congested``. Nothing of it is kept: the caller may write over a view afterwards."""

    @abc.abstractmethod
    def send_eof(self) -> None:
        """End our direction once all is sent; the peer's continues."""

    @abc.abstractmethod
    def pause(self) -> None:
        """Stop reading: the peer will be slowed down."""

    @abc.abstractmethod
    def resume(self) -> None:
        """Read again."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close when all is sent; for a connection whose two directions have ended."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Close now, in a way that the peer cannot take for a regular end."""

    async def closed(self) -> None:
        """Wait until the connection is closed."""
        await self._closed.wait()

    def _deliver(self, data: bytes | memoryview) -> None:
        if self._receiver is self._inbox:
            self.pause()
        self._receiver.received(data)

    def _end(self) -> None:
        # A TLS peer can send on after its close_notify, and would seem to end again.
        if not self._end_delivered:
            self._end_delivered = True
            self._receiver.ended()

    def _fail(self, error: ApplianceError) -> None:
        if not self._lost:
            self._lost = True
            self._receiver.lost(error)
