"""Helper programs of the benchmarks."""

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Sequence
from ipaddress import IPv4Address
from pathlib import Path

from bench.lib.our_replicator import environment
from testbed.process import OwnedProcess

_READY_SECONDS = 20.0


@contextlib.asynccontextmanager
async def running(name: str, command: Sequence[str], directory: Path, ready: str) -> AsyncIterator[OwnedProcess]:
    """Run a program; it is ready once its output has a line that matches the regular expression ``ready``."""
    log_file = directory / f"{name.replace(' ', '-')}.log"
    process = await OwnedProcess.start(name, command, log_file, environment(os.environ, directory))
    try:
        await process.wait_for_line(ready, _READY_SECONDS)
        yield process
    finally:
        await process.stop()


LOOPBACK = "127.0.0.1"
OWN_ADDRESS = str(IPv4Address("127.192.0.0") + os.getpid())
"""A loopback address for this process only.

A free port there stays free until its user listens. No other process uses a port of this address, unless it listens on
all addresses. No outgoing connection takes one, because those come from LOOPBACK.
"""


def free_port(address: str = LOOPBACK) -> int:
    """A port on which no program listens now."""
    with socket.create_server((address, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
