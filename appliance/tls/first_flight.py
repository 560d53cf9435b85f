"""The first flight of TLS 1.3, and where in it a client proves that it knows the secret; pure.

The server answers a ClientHello only if its legacy_session_id is a token that was made with the link's key, now, and
for exactly this ClientHello. To any other client it sends nothing: no certificate, no alert. The token covers the
random number and the key share, so it cannot be moved to another ClientHello.

Layout of what goes in clear text (RFC 8446, sections 4.1.2, 4.1.3 and 5.1)::

    record       type u8: 22 | version u16 | length u16 | one handshake message
    handshake    type u8: 1 ClientHello, 2 ServerHello | length u24 | version u16 | random 32 bytes
                 | legacy_session_id: length u8, bytes | the rest

A TLS 1.3 client may fill legacy_session_id with 32 random bytes, which the server echoes, and both may send an empty
change_cipher_spec, so that the line looks like a resumed TLS 1.2 to whatever stands in between (appendix D.4). Here
OpenSSL leaves both out, and both ends add and take them away on the wire. So OpenSSL hashes the same handshake at both
ends, and the line looks as ordinary TLS 1.3 does. The token::

    tag      first 24 bytes of HMAC-SHA256(tag key, time | ClientHello with an empty legacy_session_id)
    token    tag | time XOR the first 8 bytes of HMAC-SHA256(time key, tag)
    time     u64, milliseconds since 1970

The key exchange uses the share in the client's first flight, in a group of TUNNEL_KEY_EXCHANGE. A hello with another
share, or without one, is refused before OpenSSL sees it; so is a server that asks for another share (section 4.1.4). A
finite field of 8192 bits would cost an end a tenth of a second.
"""

import hmac
from collections.abc import Iterator
from dataclasses import dataclass

from appliance.errors import PeerError
from appliance.settings.values import KeyExchange
from appliance.tls.certificates import subkey

_HANDSHAKE, _ALERT = 22, 21
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
_RECORD_HEADER = 5
_SESSION_ID_AT = _RECORD_HEADER + 4 + 2 + 32
"""Offset of the length of legacy_session_id in a record, in bytes."""

_TAG_SIZE, _TIME_SIZE = 24, 8
TOKEN_SIZE = _TAG_SIZE + _TIME_SIZE
"""Bytes of a token: as many as a legacy_session_id may have."""

CLIENT_HELLO_MAX = 4096
"""Bytes of a ClientHello's record, at most; one with a post-quantum key share has some 1,500."""

_CHANGE_CIPHER_SPEC = bytes.fromhex("140303000101")

_KEY_SHARE = 51
_GROUPS = {KeyExchange.X25519: {29, 4588}, KeyExchange.P256: {23}}
"""An extension, and groups (section 4.2.7; draft-ietf-tls-ecdhe-mlkem): 4588 is X25519MLKEM768, the hybrid."""

_RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random number of a ServerHello that asks for another ClientHello (section 4.1.3)."""


class NotProven(Exception):
    """These bytes cannot become a first flight with a token in it."""


@dataclass(frozen=True, slots=True, repr=False)
class TokenKeys:
    """The keys of the tokens of one link, from its link key."""

    tag: bytes
    time: bytes

    @classmethod
    def of(cls, link_key: bytes) -> "TokenKeys":
        """The two subkeys."""
        return cls(subkey(link_key, "first flight: tag"), subkey(link_key, "first flight: time"))


@dataclass(frozen=True, slots=True)
class Proof:
    """A ClientHello whose token was made with the link's key.

    ``hello`` is its record without the token, as OpenSSL is to have it; ``time`` is the sender's, seconds since 1970.
    """

    hello: bytes
    token: bytes
    time: float


def client_hello(received: bytes) -> bytes | None:
    """The record in ``received``, the first bytes of a connection; None: it has not all come.

    Raises:
        NotProven: it is no ClientHello with room for a token in it, or more than that.
    """
    _check_prefix(received)
    if len(received) < _RECORD_HEADER:
        return None
    size = _RECORD_HEADER + int.from_bytes(received[3:5], "big")
    if not _SESSION_ID_AT + 1 + TOKEN_SIZE <= size <= CLIENT_HELLO_MAX or len(received) > size:
        raise NotProven
    if len(received) < size:
        return None
    if int.from_bytes(received[6:9], "big") != size - _RECORD_HEADER - 4:
        raise NotProven
    return received


def _check_prefix(received: bytes) -> None:
    """Refuse at the first byte that differs, without waiting for the rest."""
    for at, expected in ((0, _HANDSHAKE), (1, 3), (_RECORD_HEADER, _CLIENT_HELLO), (_SESSION_ID_AT, TOKEN_SIZE)):
        if len(received) > at and received[at] != expected:
            raise NotProven


def proof_in(record: bytes, keys: TokenKeys) -> Proof:
    """The proof that a ClientHello's record carries.

    Raises:
        NotProven: it carries none of this link's.
    """
    hello, token = without_session_id(record)
    tag, masked = token[:_TAG_SIZE], token[_TAG_SIZE:]
    time = _masked(masked, tag, keys)
    if not hmac.compare_digest(_tag(hello, time, keys), tag):
        raise NotProven
    return Proof(hello, token, int.from_bytes(time, "big") / 1000)


def token_for(hello: bytes, keys: TokenKeys, now: float) -> bytes:
    """The token for a ClientHello's record with an empty legacy_session_id, at ``now``, seconds since 1970."""
    time = max(0, int(now * 1000)).to_bytes(_TIME_SIZE, "big")
    tag = _tag(hello, time, keys)
    return tag + _masked(time, tag, keys)


def with_session_id(record: bytes, session_id: bytes) -> bytes:
    """A hello's record whose empty legacy_session_id has been filled."""
    if record[_SESSION_ID_AT : _SESSION_ID_AT + 1] != b"\0":
        raise PeerError("TLS: a hello that is not ours")
    rest = record[_SESSION_ID_AT + 1 :]
    return _resized(record, len(session_id)) + bytes([len(session_id)]) + session_id + rest


def without_session_id(record: bytes) -> tuple[bytes, bytes]:
    """A hello's record with an empty legacy_session_id, and what stood there."""
    begin = _SESSION_ID_AT + 1
    end = begin + record[_SESSION_ID_AT]
    return _resized(record, begin - end) + b"\0" + record[end:], record[begin:end]


def offers_only(exchange: KeyExchange, hello: bytes) -> bool:
    """True if a ClientHello, with an empty legacy_session_id, has key shares of these groups, and no others."""
    rest = hello[_SESSION_ID_AT + 1 :]
    rest = rest[2 + int.from_bytes(rest[:2], "big") :]
    extensions = rest[1 + (rest[0] if rest else 0) + 2 :]
    while extensions:
        kind, end = int.from_bytes(extensions[:2], "big"), 4 + int.from_bytes(extensions[2:4], "big")
        if kind == _KEY_SHARE:
            groups = set(_groups(extensions[6:end]))
            return bool(groups) and groups <= _GROUPS[exchange]
        extensions = extensions[end:]
    return False


def _groups(shares: bytes) -> Iterator[int]:
    """The groups of key shares: for each u16, the share's length u16, and the share."""
    while shares:
        yield int.from_bytes(shares[:2], "big")
        shares = shares[4 + int.from_bytes(shares[2:4], "big") :]


def _resized(record: bytes, change: int) -> bytes:
    """The part of a hello's record before legacy_session_id, with lengths changed by this many bytes."""
    length = int.from_bytes(record[3:5], "big") + change
    message = int.from_bytes(record[6:9], "big") + change
    return record[:3] + length.to_bytes(2, "big") + record[5:6] + message.to_bytes(3, "big") + record[9:_SESSION_ID_AT]


def _tag(hello: bytes, time: bytes, keys: TokenKeys) -> bytes:
    return hmac.digest(keys.tag, time + hello, "sha256")[:_TAG_SIZE]


def _masked(time: bytes, tag: bytes, keys: TokenKeys) -> bytes:
    """The time in the clear to its mask, and back."""
    mask = hmac.digest(keys.time, tag, "sha256")[:_TIME_SIZE]
    return bytes(a ^ b for a, b in zip(time, mask, strict=True))


class ClientWire:
    """Rewrites the clear text of a client's handshake: OpenSSL's on its way out, the server's on its way in.

    ``now`` is the token's time, in seconds since 1970.
    """

    def __init__(self, keys: TokenKeys, now: float) -> None:
        self._keys = keys
        self._now = now
        self._token = b""
        self._buffer = bytearray()
        self._greeted = False
        self.done = False

    def outgoing(self, data: bytes) -> bytes:
        """OpenSSL's bytes to the wire's."""
        if not self._token:
            self._token = token_for(data, self._keys, self._now)
            return with_session_id(data, self._token)
        self.done = self._greeted
        return _CHANGE_CIPHER_SPEC + data if self._greeted else data

    def incoming(self, data: bytes | memoryview) -> bytes:
        """The wire's bytes to OpenSSL's."""
        if self._greeted:
            return bytes(data)
        self._buffer += data
        record = _first_record(self._buffer)
        if record is None:
            return b""
        self._greeted = True
        rest = bytes(self._buffer[len(record) :])
        self._buffer.clear()
        if record[0] == _ALERT:
            return record + rest
        if record[_RECORD_HEADER + 6 : _SESSION_ID_AT] == _RETRY_RANDOM:
            raise PeerError("TLS: the server asks for other keys than ours: TUNNEL_KEY_EXCHANGE differs")
        hello, echoed = without_session_id(record)
        if not hmac.compare_digest(echoed, self._token):
            raise PeerError("TLS: the server has not echoed our legacy_session_id")
        return hello + rest


def _first_record(data: bytearray) -> bytes | None:
    """The first record of what a server has sent; None: it has not all come."""
    kinds = {_HANDSHAKE, _ALERT}
    if (data and data[0] not in kinds) or (len(data) > 1 and data[1] != 3):
        raise PeerError("TLS: what answers is no TLS server")
    size = _RECORD_HEADER + int.from_bytes(data[3:5], "big")
    if len(data) < _RECORD_HEADER or len(data) < size:
        return None
    record = bytes(data[:size])
    if record[0] == _HANDSHAKE and not _is_our_server_hello(record):
        raise PeerError("TLS: what answers is no server of this link")
    return record


def _is_our_server_hello(record: bytes) -> bool:
    """True if it is one ServerHello, whole, with room for an echoed token."""
    return (
        len(record) > _SESSION_ID_AT + TOKEN_SIZE
        and record[5] == _SERVER_HELLO
        and record[_SESSION_ID_AT] == TOKEN_SIZE
        and int.from_bytes(record[6:9], "big") == len(record) - _RECORD_HEADER - 4
    )


class ServerWire:
    """Rewrites the clear text of a server's handshake: the echo of ``token`` is added.

    Nothing on its way in has to change: the ClientHello was taken apart before (``proof_in``).
    """

    def __init__(self, token: bytes) -> None:
        self._token = token
        self.done = False

    def outgoing(self, data: bytes) -> bytes:
        """OpenSSL's bytes to the wire's."""
        self.done = True
        if data[0] != _HANDSHAKE:
            return data
        size = _RECORD_HEADER + int.from_bytes(data[3:5], "big")
        return with_session_id(data[:size], self._token) + _CHANGE_CIPHER_SPEC + data[size:]

    def incoming(self, data: bytes | memoryview) -> bytes:
        """The wire's bytes to OpenSSL's."""
        return bytes(data)


Wire = ClientWire | ServerWire
