"""A Docker engine on one of the machines, independent of this machine's own.

It runs in the machine's network namespace, and in its own namespaces for processes and mounts. Its bridges, firewall
rules and mounts disappear with them. When it ends, in any way, the kernel ends all of its containers. It sees no other
engine's files, because its ``/run`` is empty.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

from testbed import control_groups
from testbed.process import OwnedProcess
from tests.support.namespace import Namespace

_KEPT_IN = Path("/var/tmp")
"""A directory on a disk, because Docker's usual storage driver does not work on every file system in memory."""
_READY_SECONDS = 60.0
_SECONDS = 900.0
"""Timeout of one command, in seconds; a build takes longest."""


class Engine:
    """The Docker engine of a machine; ``engine`` starts and ends it, and meanwhile it can lose power."""

    def __init__(self, machine: Namespace) -> None:
        self.machine = machine
        self.directory = _KEPT_IN / machine.name
        self._process: OwnedProcess | None = None

    async def start(self) -> None:
        """Start it, and wait until it answers; containers that ran before start again, by their restart policy.

        Raises:
            ProcessFailed: it does not start; the text ends with its output.
        """
        log_file = self.directory / "dockerd.log"
        self._process = await OwnedProcess.start(f"dockerd on {self.machine.name}", _command(self), log_file)

        async def answers() -> bool:
            return self.run("docker", "version").returncode == 0

        await self._process.wait_until(answers, _READY_SECONDS, "answer")

    async def kill(self) -> None:
        """Kill it and all of its containers at once, as when the VM loses power."""
        if self._process is not None:
            await self._process.kill()
        control_groups.remove(_control_groups(self.machine.name))

    @property
    def environment(self) -> dict[str, str]:
        """An environment in which Docker's clients use this engine only."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "DOCKER_HOST": f"unix://{self.directory}/docker.sock",
        }

    def run(self, *command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run one of Docker's clients; it may fail."""
        return subprocess.run(
            command,
            env=self.environment,
            cwd=folder or self.directory,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def say(self, *command: str, folder: Path | None = None) -> str:
        """Run a client that must succeed; return its output, including its messages."""
        outcome = self.run(*command, folder=folder)
        if outcome.returncode:
            said = (outcome.stdout + outcome.stderr).strip().splitlines()[-15:]
            raise RuntimeError("\n    ".join([f"{' '.join(command)}: status {outcome.returncode}", *said]))
        return outcome.stdout + outcome.stderr

    def docker(self, *arguments: str) -> str:
        """Run ``docker``; return its output."""
        return self.say("docker", *arguments).strip()

    def compose(self, folder: Path, *arguments: str) -> str:
        """Run ``docker-compose`` in a link's folder; return its output."""
        return self.say("docker-compose", *arguments, folder=folder)


@contextlib.asynccontextmanager
async def engine(machine: Namespace) -> AsyncIterator[Engine]:
    """A new engine, ready; removed after the block with everything that it made.

    Raises:
        ProcessFailed: it does not start; the text ends with its output.
    """
    made = Engine(machine)
    made.directory.mkdir(mode=0o700)
    try:
        await made.start()
        yield made
    finally:
        await made.kill()
        _remove(machine.name)


def sweep() -> None:
    """Remove the leftovers of killed runs: their namespaces, named after the run, contain no process any more."""
    for path in _KEPT_IN.glob("appliance-*-*-*"):
        pid = path.name.split("-")[1]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            _remove(path.name)


def _command(made: Engine) -> list[str]:
    isolated = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    options = {
        "host": made.environment["DOCKER_HOST"],
        "data-root": made.directory / "data",
        "cgroup-parent": f"/{made.machine.name}",
        "exec-opt": "native.cgroupdriver=cgroupfs",
    }
    script = 'mount -t tmpfs run /run && exec dockerd "$@"'
    daemon = ["sh", "-c", script, "dockerd", *(f"--{name}={value}" for name, value in options.items())]
    return ["nsenter", f"--net=/run/netns/{made.machine.name}", "unshare", *isolated, *daemon]


def _remove(name: str) -> None:
    control_groups.remove(_control_groups(name))
    shutil.rmtree(_KEPT_IN / name, ignore_errors=True)


def _control_groups(name: str) -> list[Path]:
    """The control groups of the engine's containers, which the kernel keeps after their processes have ended."""
    return [root / name for root in (control_groups.ROOT, *control_groups.ROOT.iterdir())]
