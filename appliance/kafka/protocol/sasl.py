"""SASL as Kafka speaks it, without IO: each mechanism is a generator of tokens that is sent the broker's answers.

- PLAIN: RFC 4616.
- OAUTHBEARER: RFC 7628, with Kafka's extensions (KIP-255, KIP-342).
- SCRAM-SHA-256 and SCRAM-SHA-512: RFC 5802 and RFC 7677, without channel binding, as in KIP-84.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Generator, Iterable

from appliance.errors import CredentialsRefused, PeerError
from appliance.settings.secret import Secret
from appliance.settings.values import SaslMechanism

Tokens = Generator[bytes, bytes, None]
"""Yields tokens to send, receives the broker's answers, and returns when the mechanism ends."""

_HASH = {SaslMechanism.SCRAM_SHA_256: "sha256", SaslMechanism.SCRAM_SHA_512: "sha512"}
_ITERATIONS_MAX = 1_000_000


def tokens(mechanism: SaslMechanism, user: str, password: Secret) -> Tokens:
    """The conversation of a mechanism with a password.

    Raises:
        PeerError: the broker's answer breaks the mechanism, or does not prove that it knows the password.
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
        raise CredentialsRefused(f"OAUTHBEARER: {reason.decode(errors='replace')}")


def _plain(user: str, password: Secret) -> Tokens:
    yield f"\0{user}\0{password.reveal()}".encode()


def _scram(hash_name: str, user: str, password: Secret, nonce: str) -> Tokens:
    first_bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    server_first = yield f"n,,{first_bare}".encode()
    fields = _fields(server_first)
    salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
    if not fields["r"].startswith(nonce) or not 0 < iterations <= _ITERATIONS_MAX:
        raise PeerError("the broker's SCRAM challenge does not fit our nonce or asks for too many iterations")

    salted = hashlib.pbkdf2_hmac(hash_name, password.reveal().encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    final_bare = f"c=biws,r={fields['r']}"
    signed = f"{first_bare},{server_first.decode()},{final_bare}".encode()
    signature = hmac.digest(stored_key, signed, hash_name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))

    server_final = yield f"{final_bare},p={base64.b64encode(proof).decode()}".encode()
    server_key = hmac.digest(salted, b"Server Key", hash_name)
    expected = base64.b64encode(hmac.digest(server_key, signed, hash_name)).decode()
    if not hmac.compare_digest(_fields(server_final).get("v", ""), expected):
        raise PeerError("the broker could not prove by SCRAM that it knows the password")


def _fields(message: bytes) -> dict[str, str]:
    try:
        fields = dict(part.split("=", 1) for part in message.decode().split(","))
    except ValueError as error:
        raise PeerError("the broker sent an unreadable SCRAM message") from error
    if "e" in fields:
        raise CredentialsRefused(f"SCRAM: {fields['e']}")
    return fields
