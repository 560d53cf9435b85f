"""A way to the target: where it begins, and what it costs; and the target itself."""

import contextlib
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from appliance.demo.process import OwnedProcess
from appliance.errors import ProcessFailed
from appliance.tunnel.certificates import Credentials
from appliance.tunnel.identity import tls_context
from bench.loopback import LOOPBACK
from bench.running import running
from bench.tunnel_load import Entrance

_TLS_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Cipher:
    """TLS as two ends have agreed on it."""

    version: str
    suite: str


@dataclass(frozen=True, slots=True)
class Way:
    """Where it begins, and its two processes, first the one that is dialled; a direct way has none."""

    entrance: Entrance
    processes: tuple[OwnedProcess, ...] = ()


@contextlib.asynccontextmanager
async def target(directory: Path) -> AsyncIterator[int]:
    """Runs the target; its port."""
    command = [sys.executable, "-m", "bench.tunnel_target"]
    async with running("the target", command, directory, r"^port \d+$") as process:
        yield int(process.log_file.read_text().split()[-1])


def negotiated(port: int, credentials: Credentials) -> Cipher:
    """What a server agrees on with a client that has these credentials, and the TLS of our client.

    Raises:
        ProcessFailed: on nothing.
    """
    context = tls_context(credentials, ssl.PROTOCOL_TLS_CLIENT)
    try:
        with socket.create_connection((LOOPBACK, port), _TLS_SECONDS) as plain, context.wrap_socket(plain) as tls:
            suite = tls.cipher()
            return Cipher(tls.version() or "none", suite[0] if suite else "none")
    except OSError as error:
        raise ProcessFailed(f"no TLS on port {port}: {error}") from error
