"""A way to the target: where it begins, and what it costs; and the target itself."""

import contextlib
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.demo.process import OwnedProcess
from appliance.errors import ProcessFailed
from appliance.tunnel.certificates import Credentials
from appliance.tunnel.identity import tls_context
from bench.our_replicator import environment
from bench.tunnel_load import Entrance

LOOPBACK = "127.0.0.1"
_READY_SECONDS = 20.0


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


@contextlib.asynccontextmanager
async def running(name: str, command: Sequence[str], directory: Path, ready: str) -> AsyncIterator[OwnedProcess]:
    """Runs a program whose output has a line with the regular expression ``ready`` once it is."""
    log_file = directory / f"{name.replace(' ', '-')}.log"
    process = await OwnedProcess.start(name, command, log_file, environment(os.environ, directory))
    try:
        await process.wait_for_line(ready, _READY_SECONDS)
        yield process
    finally:
        await process.stop()


def negotiated(port: int, credentials: Credentials) -> Cipher:
    """What a server agrees on with a client that has these credentials, and the TLS of our client.

    Raises:
        ProcessFailed: on nothing.
    """
    context = tls_context(credentials, ssl.PROTOCOL_TLS_CLIENT)
    try:
        with socket.create_connection((LOOPBACK, port), _READY_SECONDS) as plain, context.wrap_socket(plain) as tls:
            suite = tls.cipher()
            return Cipher(tls.version() or "none", suite[0] if suite else "none")
    except OSError as error:
        raise ProcessFailed(f"no TLS on port {port}: {error}") from error


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.create_server((LOOPBACK, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
