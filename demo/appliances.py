"""The three processes of the link: the same commands as in production, each with its own log."""

import sys
from collections.abc import Mapping
from pathlib import Path

from appliance.errors import ProcessFailed
from testbed.process import OwnedProcess
from testbed.tasks import to_the_end

_READY_SECONDS = 120.0


class Appliances:
    """The source VM's process, and the two of the destination VM.

    Args:
        env_file: the link's setenv.sh.
        logs: the directory of their logs.
        environment: the environment of the processes.
    """

    def __init__(self, env_file: Path, logs: Path, environment: Mapping[str, str]) -> None:
        self._env_file = env_file
        self._logs = logs
        self._environment = environment
        self._processes: dict[str, OwnedProcess] = {}

    async def start_gateways(self) -> None:
        """Wait until both ends of the tunnel listen.

        Raises:
            ProcessFailed: one ended, or was not ready in time.
        """
        await self._start("source", TUNNEL_STATUS_LISTEN="127.0.0.1:0")  # both VMs are this machine
        await self._start("destination")
        for command in ("source", "destination"):
            await self._processes[command].wait_for_line(r"\bready\b", _READY_SECONDS)

    async def start_replicator(self) -> None:
        """Start the replicator, without waiting until it is ready."""
        await self._start("replicate")

    async def start_control_center(self) -> str:
        """Start the control center, and return the address of its page.

        Raises:
            ProcessFailed: it ended, or was not ready in time.
        """
        await self._start("console")
        address = await self._processes["console"].wait_for_address("console: listening", _READY_SECONDS)
        return f"http://{address}/"

    async def kill_replicator(self) -> None:
        """Send SIGKILL to the replicator, its JVM and its Python workers at once, as when a VM dies."""
        await to_the_end(self._processes.pop("replicate").kill())

    @property
    def replicator(self) -> OwnedProcess:
        """The running replicator.

        Raises:
            ProcessFailed: it was never started, or killed.
        """
        if "replicate" not in self._processes:
            raise ProcessFailed("the replicator was not started")
        return self._processes["replicate"]

    def require_running(self) -> None:
        """Require that all started processes are running.

        Raises:
            ProcessFailed: one has ended.
        """
        for process in self._processes.values():
            process.require_running()

    async def close(self) -> None:
        """Kill all of them."""
        for process in self._processes.values():
            await process.kill()

    async def _start(self, command: str, **changed: str) -> None:
        arguments = [sys.executable, "-m", "appliance.cli", command, "--env-file", str(self._env_file)]
        log_file = self._logs / f"{command}.log"
        name = f"appliance {command}"
        self._processes[command] = await OwnedProcess.start(name, arguments, log_file, {**self._environment, **changed})
