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
"""The script of a shell that lowers the limit of file descriptors, hard and soft, and becomes the command."""


def gateway_variables(broker_port: int, tunnel_port: int, **changed: str) -> dict[str, str]:
    """A setenv.sh of a link on loopback, its tunnel at OWN_ADDRESS, whose one broker is ``HOST`` on ``broker_port``."""
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
    """``appliance source`` or ``destination``, ready; ``descriptors`` limits it to so many."""
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
