"""Programs of the benchmarks, with the environment of a new machine, and addresses for them."""

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path

import appliance
from appliance.settings.variables import NAMES
from testbed.process import OwnedProcess

_CHECKOUT = Path(appliance.__file__).parents[1]
_READY_SECONDS = 20.0
_NO_VARIABLES: Mapping[str, str] = {}


@contextlib.asynccontextmanager
async def running(
    name: str,
    command: Sequence[str],
    directory: Path,
    ready: str = "",
    log_name: str = "",
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> AsyncIterator[OwnedProcess]:
    """Run a program, whose log is named as the program if not by ``log_name``.

    With ``ready``, it is ready once its output has a line that matches this regular expression.
    """
    log_file = directory / f"{log_name or name.replace(' ', '-')}.log"
    process = await OwnedProcess.start(name, command, log_file, {**environment(os.environ, directory), **variables})
    try:
        if ready:
            await process.wait_for_line(ready, _READY_SECONDS)
        yield process
    finally:
        await process.stop()


def environment(ours: Mapping[str, str], directory: Path) -> dict[str, str]:
    """A program's environment: ours, without the settings of a real link, which would override those of a file.

    ``directory`` is for its temporary files, which it leaves there when killed.
    """
    inherited = {name: value for name, value in ours.items() if name not in NAMES}
    return inherited | {"PYTHONPATH": str(_CHECKOUT), "TMPDIR": str(directory)}


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
