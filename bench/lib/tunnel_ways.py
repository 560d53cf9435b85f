"""The paths to the target: their addresses, processes and costs; and the target itself."""

import contextlib
import secrets
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import ProcessFailed
from appliance.settings.values import Side
from appliance.tls.certificates import Credentials, make_credentials
from appliance.tls.identity import tls_context
from bench.lib.running import LOOPBACK, running
from bench.lib.tunnel_load import Entrance
from testbed.process import OwnedProcess

_TLS_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Cipher:
    """The negotiated TLS parameters of two ends."""

    version: str
    suite: str


@dataclass(frozen=True, slots=True)
class Way:
    """One path to the target: its address, its two processes (the dialled one first), and the second one's port."""

    entrance: Entrance
    processes: tuple[OwnedProcess, ...] = ()
    server_port: int = 0


@contextlib.asynccontextmanager
async def target(directory: Path) -> AsyncIterator[int]:
    """Run the target; yield its port."""
    command = [sys.executable, "-m", "bench.lib.tunnel_target"]
    async with running("the target", command, directory, r"^port \d+$") as process:
        yield int(process.log_file.read_text().split()[-1])


def ours() -> Cipher:
    """The TLS that our two ends negotiate, without sockets, because our server answers our client only."""
    key, there, back = secrets.token_bytes(32), ssl.MemoryBIO(), ssl.MemoryBIO()
    client = _context(key, Side.DESTINATION).wrap_bio(back, there)
    server = _context(key, Side.SOURCE).wrap_bio(there, back, server_side=True)
    for end in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return _cipher(client)


def _context(key: bytes, side: Side) -> ssl.SSLContext:
    protocol = ssl.PROTOCOL_TLS_SERVER if side is Side.SOURCE else ssl.PROTOCOL_TLS_CLIENT
    return tls_context(make_credentials(key, "bench", side), protocol)


def _cipher(tls: ssl.SSLObject | ssl.SSLSocket) -> Cipher:
    suite = tls.cipher()
    return Cipher(tls.version() or "none", suite[0] if suite else "none")


def negotiated(port: int, credentials: Credentials) -> Cipher:
    """The TLS that a server negotiates with a client that has these credentials and our client's settings."""
    context = tls_context(credentials, ssl.PROTOCOL_TLS_CLIENT)
    try:
        with socket.create_connection((LOOPBACK, port), _TLS_SECONDS) as plain, context.wrap_socket(plain) as tls:
            return _cipher(tls)
    except OSError as error:
        raise ProcessFailed(f"no TLS on port {port}: {error}") from error
