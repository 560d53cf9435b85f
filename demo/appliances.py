"""The processes of a link, or of a VM of an order: the same commands as in production, each with its own log."""

import sys
from collections.abc import Mapping
from pathlib import Path

from appliance.errors import ProcessFailed
from testbed.process import OwnedProcess
from testbed.tasks import to_the_end

_READY_SECONDS = 120.0


class Appliances:
    """The source VM's process, and the two of the destination VM; or the three of a VM of an order.

    Args:
        env_file: their setenv.sh.
        logs: the directory of their logs.
        environment: the environment of the processes.
        replicator: the command that copies.
    """

    def __init__(
        self, env_file: Path, logs: Path, environment: Mapping[str, str], replicator: str = "replicate"
    ) -> None:
        self._env_file = env_file
        self._logs = logs
        self._environment = environment
        self._replicator = replicator
        self._processes: dict[str, OwnedProcess] = {}

    async def start_gateways(self) -> None:
        """Wait until both ends of the tunnel listen.

        Raises:
            ProcessFailed: one ended, or was not ready in time.
        """
        await self._start("source", TUNNEL_STATUS_LISTEN="127.0.0.1:0")  # both VMs are this machine
        await self._start("destination")
        for command in ("source", "destination"):
            await self._ready(command)

    async def start_replicator(self) -> None:
        """Start the replicator, without waiting until it is ready."""
        await self._start(self._replicator)

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
        await to_the_end(self._processes.pop(self._replicator).kill())

    async def cut_off(self) -> None:
        """Send SIGKILL to the end of the tunnels through which this VM reaches others."""
        await to_the_end(self._processes.pop("destination").kill())

    async def mend(self) -> None:
        """Start that end again, and wait until it listens.

        Raises:
            ProcessFailed: it ended, or was not ready in time.
        """
        await self._start("destination")
        await self._ready("destination")

    @property
    def replicator(self) -> OwnedProcess:
        """The running replicator.

        Raises:
            ProcessFailed: it was never started, or killed.
        """
        if self._replicator not in self._processes:
            raise ProcessFailed("the replicator was not started")
        return self._processes[self._replicator]

    def require_running(self) -> None:
        """Require that all started processes are running.

        Raises:
            ProcessFailed: one has ended.
        """
        for process in self._processes.values():
            process.require_running()

    async def close(self) -> None:
        """Send SIGKILL to all of them, as when their VM dies."""
        processes, self._processes = self._processes, {}
        for process in processes.values():
            await process.kill()

    async def _ready(self, command: str) -> None:
        await self._processes[command].wait_for_line(r"\bready\b", _READY_SECONDS)

    async def _start(self, command: str, **changed: str) -> None:
        arguments = [sys.executable, "-m", "appliance.cli", *command.split(), "--env-file", str(self._env_file)]
        log_file = self._logs / f"{command.replace(' ', '-')}.log"
        name = f"appliance {command}"
        self._processes[command] = await OwnedProcess.start(name, arguments, log_file, {**self._environment, **changed})
