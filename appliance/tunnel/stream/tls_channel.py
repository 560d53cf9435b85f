"""A channel with TLS inside: it sends and receives plaintext, and each direction still ends on its own."""

import asyncio
import ssl
from collections.abc import Callable

from appliance.clock import deadline, epoch_seconds
from appliance.errors import ApplianceError, HelloUnanswered, Unreachable
from appliance.tls.engine import TlsLayer
from appliance.tls.first_flight import ClientWire, Wire
from appliance.tls.identity import LinkTls
from appliance.tunnel.stream.tcp_channel import TcpChannel


class TlsChannel(TcpChannel):
    """A TCP connection with TLS; it sends and receives plaintext.

    ``made`` is called when the TCP connection is established, before the handshake.
    """

    def __init__(
        self, context: ssl.SSLContext, made: Callable[[TcpChannel], None] | None = None, wire: Wire | None = None
    ) -> None:
        super().__init__(made)
        self._tls = TlsLayer(context, wire)
        self._handshake_over = asyncio.Event()
        self._answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the TCP connection stands; a client says hello."""
        super().connection_made(transport)
        self._tls.start()
        self._flush()

    def begun_with(self, data: bytes) -> None:
        """Take ``data``, which was read before this was the connection's protocol."""
        self._arrived(memoryview(data))

    async def handshake(self, seconds: float) -> bytes | None:
        """Wait until TLS stands; the peer's certificate in DER.

        Raises:
            IdentityRefused: one end does not accept the other's certificate.
            HelloUnanswered: the other end closed without an answer.
        """
        async with deadline(seconds, "no TLS handshake"):
            await self._handshake_over.wait()
        if self._inbox.error:
            raise self._inbox.error
        return self._tls.peer_certificate()

    def send(self, data: bytes | memoryview) -> None:
        """Encrypt and send ``data``."""
        if self._lost:
            return
        try:
            self._tls.send(data)
        except ApplianceError as error:
            self._break(error)
        else:
            self._flush()

    def send_eof(self) -> None:
        """End our direction by a close_notify.

        TCP's own direction stays open until both have ended: firewalls on the way forget a half-closed connection soon.
        """
        if self._lost:
            return
        try:
            self._tls.send_eof()
        except ApplianceError as error:
            self._break(error)
        else:
            self._flush()

    def _arrived(self, data: memoryview) -> None:
        self._answered = True
        try:
            plaintext = self._tls.receive(data)
        except ApplianceError as error:
            self._break(error)
            return
        self._flush()
        if self._tls.handshaken:
            self._handshake_over.set()
        if plaintext:
            self._deliver(plaintext)
        if self._tls.ended:
            self._end()

    def _tcp_ended(self) -> None:
        # Without a close_notify this may be an attacker's cut, not the peer's end: it is never passed on as one.
        if not self._answered:
            self._fail(HelloUnanswered("hung up on our TLS hello without a word"))
        elif not self._tls.ended:
            self._fail(Unreachable("connection lost: closed without TLS's close_notify"))

    def _fail(self, error: ApplianceError) -> None:
        super()._fail(error)
        self._handshake_over.set()

    def _break(self, error: ApplianceError) -> None:
        """Fail the connection; the bytes that are ready to be sent then are an alert with the reason."""
        self._flush()
        self._fail(error)

    def _flush(self) -> None:
        ciphertext = self._tls.outgoing()
        if ciphertext:
            super().send(ciphertext)


def client_channel(keys: LinkTls, ahead: float = 0.0) -> TlsChannel:
    """A client's channel, whose first flight proves the ``keys`` secret, by a clock ``ahead`` seconds fast."""
    return TlsChannel(keys.context, wire=ClientWire(keys.tokens, epoch_seconds() + ahead))
