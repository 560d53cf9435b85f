"""SASL as Kafka speaks it, without IO: each mechanism is a generator of tokens that is sent the broker's answers.

- PLAIN: RFC 4616.
- OAUTHBEARER: RFC 7628, with Kafka's extensions (KIP-255, KIP-342).
- SCRAM-SHA-256 and SCRAM-SHA-512: RFC 5802 and RFC 7677, without channel binding, as in KIP-84.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Generator, Iterable

from appliance.errors import CredentialsRefused, PeerError
from appliance.settings.secret import Secret
from appliance.settings.values import SaslMechanism

Tokens = Generator[bytes, bytes, None]
"""Yields tokens to send, receives the broker's answers, and returns when the mechanism ends."""

_HASH = {SaslMechanism.SCRAM_SHA_256: "sha256", SaslMechanism.SCRAM_SHA_512: "sha512"}
_ITERATIONS = range(4096, 100_001)
"""Iterations that a broker may ask for: RFC 7677 wants 4,096 at least, Kafka stores 16,384 at most, and each costs."""

_BASE64 = rb"((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==))"
_SERVER_FIRST = re.compile(rb"r=([!-+\--~]+),s=%s,i=([1-9][0-9]{0,9})(?:,.*)?" % _BASE64, re.DOTALL)
_SERVER_FINAL = re.compile(rb"v=%s(?:,.*)?" % _BASE64, re.DOTALL)
"""The server's messages (RFC 5802, section 7)."""


def tokens(mechanism: SaslMechanism, user: str, password: Secret) -> Tokens:
    """The conversation of a mechanism with a password.

    Raises:
        CredentialsRefused: SCRAM says that the user or password is wrong.
    """
    if mechanism is SaslMechanism.PLAIN:
        return _plain(user, password)
    return _scram(_HASH[mechanism], user, password, secrets.token_urlsafe(24))


def bearer(token: Secret, extensions: Iterable[tuple[str, str]] = ()) -> Tokens:
    """The conversation of OAUTHBEARER.

    A broker that does not accept the token says why in its answer, and fails the login when that is acknowledged.

    Raises:
        CredentialsRefused: the token is not accepted.
    """
    pairs = "".join(f"{name}={value}\x01" for name, value in (("auth", f"Bearer {token.reveal()}"), *extensions))
    reason = yield f"n,,\x01{pairs}\x01".encode()
    if reason:
        yield b"\x01"
        raise CredentialsRefused(f"OAUTHBEARER: {_shown(reason)}")


def _plain(user: str, password: Secret) -> Tokens:
    yield f"\0{user}\0{password.reveal()}".encode()


def _scram(hash_name: str, user: str, password: Secret, nonce: str) -> Tokens:
    first_bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    server_first = yield f"n,,{first_bare}".encode()
    server_nonce, salt, rounds = _fields(_SERVER_FIRST, server_first)
    iterations = int(rounds)
    if not server_nonce.startswith(nonce.encode()) or iterations not in _ITERATIONS:
        raise PeerError(f"a SCRAM challenge for another nonce, or of unsafe {iterations} iterations")

    salted = hashlib.pbkdf2_hmac(hash_name, password.reveal().encode(), base64.b64decode(salt), iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    final_bare = b"c=biws,r=" + server_nonce
    signed = b",".join((first_bare.encode(), server_first, final_bare))
    signature = hmac.digest(stored_key, signed, hash_name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))

    server_final = yield final_bare + b",p=" + base64.b64encode(proof)
    server_key = hmac.digest(salted, b"Server Key", hash_name)
    expected = base64.b64encode(hmac.digest(server_key, signed, hash_name))
    (verifier,) = _fields(_SERVER_FINAL, server_final)
    if not hmac.compare_digest(verifier, expected):
        raise PeerError("the broker could not prove by SCRAM that it knows the password")


def _fields(form: re.Pattern[bytes], message: bytes) -> tuple[bytes, ...]:
    if message.startswith(b"e="):
        raise CredentialsRefused(f"SCRAM: {_shown(message[2:])}")
    match = form.fullmatch(message)
    if match is None:
        raise PeerError(f"a SCRAM message that RFC 5802 does not know: {_shown(message)}")
    return match.groups()


def _shown(message: bytes) -> str:
    return " ".join(message[:200].decode(errors="replace").split())
