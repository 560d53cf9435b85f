"""Both ends of a tunnel on loopback, and strangers who try their certificates and requests on it."""

import asyncio
import functools
import ssl
from dataclasses import dataclass

from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tunnel.certificates import make_credentials
from appliance.tunnel.identity import Identity
from tests.support.tunnel import LINK, SECRET, Ends


@functools.cache
def identity(side: Side, secret: str = SECRET, link: str = LINK) -> Identity:
    """One end's identity; cached, because the derivation is meant to be slow."""
    return Identity(link, side, make_credentials(Secret(secret), link, side))


TLS = Ends(identity)
running_server, running_client, link_to = TLS.running_server, TLS.running_client, TLS.link_to


@dataclass(frozen=True)
class Trusting:
    """An end with a certificate of its own, which leaves it to TLS to mind who the other one is."""

    context: ssl.SSLContext

    def check(self, certificate: bytes | None) -> None:
        """Anybody is welcome."""

    def refused(self, context: ssl.SSLContext) -> None:
        """There is no other certificate."""


async def ask_connect(
    port: int, request: bytes, context: ssl.SSLContext | None = None, address: str = "127.0.0.1"
) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
    """The status line that a server gives to a request, by a TLS client at ``address`` that is not ours."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1",
        port,
        ssl=context or identity(Side.DESTINATION).context,
        server_hostname="",
        local_addr=(address, 0),
    )
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    return head.partition(b"\r\n")[0], reader, writer


def connect_request(target: Target) -> bytes:
    """The head that names ``target``."""
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()
