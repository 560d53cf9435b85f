"""The two ends of the tunnel as processes of their own, without clusters."""

import contextlib
import os
import shlex
import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from bench.lib.running import OWN_ADDRESS
from testbed.process import OwnedProcess
from tests.support.patience import PATIENCE
from tests.support.settings import REQUIRED
from tests.support.tunnel import HOST, SECRET

LIMITED = 'ulimit -n "$0" && exec "$@"'
"""A shell script that lowers the hard and soft limit of file descriptors, and then executes the command."""


def gateway_variables(broker_port: int, tunnel_port: int, **changed: str) -> dict[str, str]:
    """A setenv.sh of a link on loopback, with the tunnel at OWN_ADDRESS, and one broker: ``HOST`` on
    ``broker_port``."""
    return {
        **REQUIRED,
        "SOURCE_BROKER_SERVERS": f"{HOST}:{broker_port}",
        "SHARED_SECRET": SECRET,
        "SOURCE_SIDE_TUNNEL_IP": OWN_ADDRESS,
        "DESTINATION_SIDE_TUNNEL_IP": "127.0.0.1",
        "TUNNEL_PORT": str(tunnel_port),
        "TUNNEL_LISTEN": OWN_ADDRESS,
        "TUNNEL_BROKER_NETWORKS": "127.0.0.0/8",
        "TUNNEL_STATUS_LISTEN": "127.0.0.1:0",
        **changed,
    }


@contextlib.asynccontextmanager
async def gateway_process(
    command: str, variables: Mapping[str, str], directory: Path, descriptors: int = 0
) -> AsyncIterator[OwnedProcess]:
    """``appliance source`` or ``destination``, ready; ``descriptors`` limits its number of file descriptors."""
    name = f"{command}-{time.monotonic_ns()}"
    env_file = directory / f"{name}.sh"
    env_file.touch(mode=0o600)
    env_file.write_text("".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items()))
    command_line = [sys.executable, "-m", "appliance.cli", command, "--env-file", str(env_file)]
    if descriptors:
        command_line = ["sh", "-c", LIMITED, str(descriptors), *command_line]
    environment = {**os.environ, "TMPDIR": str(directory)}
    process = await OwnedProcess.start(name, command_line, directory / f"{name}.log", environment)
    try:
        await process.wait_for_line(r"\bready\b", PATIENCE)
        yield process
    finally:
        await process.kill()
