"""Both ends of a tunnel on loopback, and strangers that try certificates and requests on it."""

import asyncio
import functools
import ssl
from dataclasses import dataclass

from cryptography import x509

from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import KeyExchange, Side
from appliance.tls.certificates import Credentials, link_key, make_credentials
from appliance.tls.first_flight import TokenKeys
from appliance.tls.identity import Identity, LinkTls, tls_context
from appliance.tunnel.stream.tls_channel import TlsChannel, client_channel
from tests.support.patience import PATIENCE
from tests.support.tunnel import IDS, LINK, SECRET, Ends


@functools.cache
def key_of(secret: str = SECRET, ids: tuple[str, str] = IDS) -> bytes:
    """A link's key; cached, because the key derivation is slow on purpose."""
    return link_key(Secret(secret), *ids)


@functools.cache
def identity(
    side: Side,
    secret: str = SECRET,
    ids: tuple[str, str] = IDS,
    exchange: KeyExchange = KeyExchange.X25519,
) -> Identity:
    """One end's identity."""
    key, link = key_of(secret, ids), "-".join(ids)
    return Identity(link, side, (TokenKeys.of(key), make_credentials(key, link, side)), exchange=exchange)


TLS = Ends(identity)
running_server, running_client, link_to = TLS.running_server, TLS.running_client, TLS.link_to


def known(credentials: Credentials | None = None, side: Side = Side.DESTINATION, secret: str = SECRET) -> LinkTls:
    """The identity of an end with these credentials; the caller may change its TLS."""
    protocol = ssl.PROTOCOL_TLS_SERVER if side is Side.SOURCE else ssl.PROTOCOL_TLS_CLIENT
    shown = credentials or make_credentials(key_of(), LINK, side)
    leaf = x509.load_pem_x509_certificates(shown.key_and_certificate)[0]
    return LinkTls(TokenKeys.of(key_of(secret)), tls_context(shown, protocol), leaf)


def careless(credentials: Credentials | None = None) -> LinkTls:
    """A client that knows the secret, presents these credentials and accepts any server."""
    end = known(credentials)
    end.context.verify_mode = ssl.CERT_NONE
    return end


@dataclass(frozen=True)
class Trusting:
    """An end that leaves the check of its peer to TLS."""

    tls: LinkTls
    exchange: KeyExchange = KeyExchange.X25519

    def check(self, certificate: bytes | None) -> None:
        """Accept every peer."""

    def refused(self, keys: LinkTls) -> None:
        """Return no other certificate."""

    def accepted(self, keys: LinkTls) -> None:
        """Return no previous secret."""


async def ask_connect(
    port: int, request: bytes, end: LinkTls | None = None, address: str = "127.0.0.1"
) -> tuple[bytes, TlsChannel]:
    """The status line of a server's answer to a client at ``address`` that accepts any server."""
    end = end or identity(Side.DESTINATION).tls
    _, channel = await asyncio.get_running_loop().create_connection(
        lambda: client_channel(end), "127.0.0.1", port, local_addr=(address, 0)
    )
    await channel.handshake(PATIENCE)
    channel.send(request)
    head = b""
    while b"\r\n\r\n" not in head:
        received = await channel.receive()
        if not received:
            raise ConnectionResetError("no answer")
        head += received
    return head.partition(b"\r\n")[0], channel


def connect_request(target: Target) -> bytes:
    """The head of a request for ``target``."""
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()
