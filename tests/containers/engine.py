"""A Docker engine on one of the machines, which is none of this machine's own.

It runs in the machine's network namespace, and in namespaces of its own for processes and mounts: its bridges, its
firewall rules and its mounts vanish with them, and the kernel ends all of its containers when it ends, however that
happens. It sees no other engine's files, as its ``/run`` is empty.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from testbed.process import OwnedProcess
from tests.support.namespace import Namespace

_KEPT_IN = Path("/var/tmp")
"""A disk: Docker's usual way to stack layers does not work everywhere in memory."""
_CGROUPS = Path("/sys/fs/cgroup")
_READY_SECONDS = 60.0
_SECONDS = 300.0
"""For any one command; a build is the longest."""


class Engine:
    """One of a machine; ``engine`` starts and ends it, and in between it can lose power."""

    def __init__(self, machine: Namespace) -> None:
        self.machine = machine
        self.directory = _KEPT_IN / machine.name
        self._process: OwnedProcess | None = None

    async def start(self) -> None:
        """Returns when it answers; containers that ran before begin again, as their restart policy says.

        Raises:
            ProcessFailed: it does not start; the text ends with what it says.
        """
        log_file = self.directory / "dockerd.log"
        self._process = await OwnedProcess.start(f"dockerd on {self.machine.name}", _command(self), log_file)

        async def answers() -> bool:
            return self.run("docker", "version").returncode == 0

        await self._process.wait_until(answers, _READY_SECONDS, "answer")

    async def kill(self) -> None:
        """End it and all of its containers at one stroke, as when the VM loses power."""
        if self._process is not None:
            await self._process.kill()
        for control_group in _control_groups(self.machine.name):
            _remove_when_empty(control_group)

    @property
    def environment(self) -> dict[str, str]:
        """The environment with which Docker's clients talk to this engine only."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "DOCKER_HOST": f"unix://{self.directory}/docker.sock",
        }

    def run(self, *command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run one of Docker's clients to its end, whichever that is."""
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
        """Run one that has to succeed; what it printed, its remarks too."""
        outcome = self.run(*command, folder=folder)
        if outcome.returncode:
            said = (outcome.stdout + outcome.stderr).strip().splitlines()[-15:]
            raise RuntimeError("\n    ".join([f"{' '.join(command)}: status {outcome.returncode}", *said]))
        return outcome.stdout + outcome.stderr

    def docker(self, *arguments: str) -> str:
        """Run ``docker``; what it printed."""
        return self.say("docker", *arguments).strip()

    def compose(self, folder: Path, *arguments: str) -> str:
        """Run ``docker-compose`` in a link's folder; what it printed."""
        return self.say("docker-compose", *arguments, folder=folder)


@contextlib.asynccontextmanager
async def engine(machine: Namespace) -> AsyncIterator[Engine]:
    """A new one, ready; gone after the block with all that it made.

    Raises:
        ProcessFailed: it does not start; the text ends with what it says.
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
    """Remove what a run left that was killed: its namespaces, which have its name, hold no process any more."""
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
    for control_group in _control_groups(name):
        _remove_when_empty(control_group)
    shutil.rmtree(_KEPT_IN / name, ignore_errors=True)


def _control_groups(name: str) -> Iterator[Path]:
    """Those of the engine's containers, the inner ones first: the kernel keeps them when their processes are gone."""
    for root in [_CGROUPS, *_CGROUPS.iterdir()]:
        for path, _, _ in os.walk(root / name, topdown=False):
            yield Path(path)


def _remove_when_empty(control_group: Path, patience: float = 5.0) -> None:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            control_group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)  # its last process is still dying
        else:
            return
