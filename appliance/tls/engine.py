"""TLS as a function of bytes: ciphertext and plaintext in and out, no IO.

asyncio's own TLS transport cannot end one direction: it has no ``write_eof``, and it answers the peer's close_notify by
closing. TLS 1.3 can: a close_notify ends only the direction in which it travels (RFC 8446, section 6.1). OpenSSL
supports it too, with one trap: ``unwrap`` calls ``SSL_shutdown`` a second time to look for the peer's close_notify, and
this discards any application data before it. Here there is none, because ``receive`` decrypts all its input at once, so
OpenSSL never holds a whole record when ``send_eof`` is called. On a real socket this could not be promised, therefore
the memory BIOs; they also cost no more than asyncio's, which uses the same.
"""

import ssl
from typing import NoReturn

from appliance.errors import ApplianceError, ClockDiffers, IdentityRefused, PeerError
from appliance.tls.first_flight import Wire

_RECORD_SIZE = 16384
"""The most plaintext that one TLS record holds (RFC 8446, section 5.1), so that one read empties a record."""

_INCOMING, _OUTGOING = ssl.MemoryBIO(), ssl.MemoryBIO()
"""The memory BIOs of every connection of the process, used one after the other in one thread.

Both are empty between any two calls: OpenSSL keeps the start of a record for itself, and what it writes is taken away
at once. A BIO never shrinks, so that BIOs of its own would cost each connection for ever what its largest read cost.
"""

_IDENTITY_REASONS = ("CERTIFICATE", "UNKNOWN_CA", "DECRYPT_ERROR", "ACCESS_DENIED")
"""Parts of OpenSSL's names of errors and alerts that concern the peer's identity.

DECRYPT_ERROR is among them: with it OpenSSL answers a signature that does not verify (RFC 8446, section 6.2).
"""

_CLOCK_REASONS = ("ALERT_BAD_CERTIFICATE", "ALERT_CERTIFICATE_EXPIRED")
"""The alerts with which OpenSSL answers a certificate that is not valid yet, or no longer."""
_NOT_YET_VALID, _EXPIRED = 9, 10
"""OpenSSL's own codes for the same (X509_V_ERR_CERT_NOT_YET_VALID and _HAS_EXPIRED)."""


class TlsLayer:
    """One TLS connection between two streams of bytes.

    ``handshaken`` is true once this end is satisfied with the handshake; in TLS 1.3 a client learns only by its first
    read whether the server was. ``ended`` is true once the peer's close_notify has arrived.
    ``wire`` rewrites the handshake's clear text; None: it goes as OpenSSL has made it.
    """

    def __init__(self, context: ssl.SSLContext, wire: Wire | None = None) -> None:
        self._wire = wire
        server_side = context.protocol == ssl.PROTOCOL_TLS_SERVER
        self._object = context.wrap_bio(_INCOMING, _OUTGOING, server_side=server_side)
        self._ready = b""
        self.handshaken = False
        self.ended = False

    def start(self) -> None:
        """Begin the handshake: a client has its hello to send then."""
        try:
            self._shake_hands()
        finally:
            self._clear()

    def receive(self, ciphertext: bytes | memoryview) -> bytes:
        """The plaintext of all records that ``ciphertext`` completes."""
        _INCOMING.write(self._wire.incoming(ciphertext) if self._wire else ciphertext)
        try:
            if not self.handshaken:
                self._shake_hands()
            return self._decrypt() if self.handshaken else b""
        finally:
            self._clear()

    def send(self, plaintext: bytes | memoryview) -> None:
        """Encrypt ``plaintext`` for ``outgoing``."""
        view = memoryview(plaintext)
        try:
            while view:
                view = view[self._object.write(view) :]
        except ssl.SSLError as error:
            _translate(error)
        finally:
            self._clear()

    def send_eof(self) -> None:
        """End this direction by a close_notify; the other one continues."""
        try:
            self._object.unwrap()
        except ssl.SSLWantReadError:
            return  # the peer has not ended its direction yet
        except ssl.SSLError as error:
            _translate(error)
        finally:
            self._clear()

    def outgoing(self) -> bytes:
        """The ciphertext that has to be sent now; there may be some after any other call, also one that raised."""
        ciphertext, self._ready = self._ready, b""
        if self._wire and ciphertext:
            ciphertext = self._wire.outgoing(ciphertext)
            self._wire = None if self._wire.done else self._wire
        return ciphertext

    def peer_certificate(self) -> bytes | None:
        """The peer's certificate in DER."""
        return self._object.getpeercert(binary_form=True)

    def _shake_hands(self) -> None:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            _translate(error)
        self.handshaken = True

    def _clear(self) -> None:
        """Empty the BIOs for the next connection: take the written bytes, and drop bytes after an end or a fault."""
        self._ready += _OUTGOING.read()
        _INCOMING.read()

    def _decrypt(self) -> bytes:
        pieces = []
        try:
            while _INCOMING.pending and not self.ended:
                piece = self._object.read(_RECORD_SIZE)
                pieces.append(piece)
                self.ended = not piece
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            _translate(error)
        return b"".join(pieces)


def _translate(error: ssl.SSLError) -> NoReturn:
    reason = error.reason or "unknown"
    detail = f": {error.verify_message}" if isinstance(error, ssl.SSLCertVerificationError) else ""
    raise _kind(error, reason)(f"TLS: {reason.lower().replace('_', ' ')}{detail}") from error


def _kind(error: ssl.SSLError, reason: str) -> type[ApplianceError]:
    by_us = isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in (_NOT_YET_VALID, _EXPIRED)
    if by_us or any(word in reason for word in _CLOCK_REASONS):
        return ClockDiffers
    return IdentityRefused if any(word in reason for word in _IDENTITY_REASONS) else PeerError
