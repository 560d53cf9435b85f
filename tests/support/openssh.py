"""OpenSSH's own server, with a configuration of our own."""

import asyncio
import contextlib
import getpass
import os
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from appliance.runtime.child_process import killed_with_parent
from appliance.settings.values import KeyFiles
from tests.support.patience import PATIENCE
from tests.support.ssh import write_keys

PRIVILEGE_SEPARATION = Path("/run/sshd")
"""The empty folder that sshd requires as root; Debian's service makes it."""


def tool(name: str, package: str) -> str:
    """The path of a program; the test fails if its Debian package is not installed."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not found:
        pytest.fail(f"{name} is missing: sudo apt-get install {package}", pytrace=False)
    return found


def configured(directory: Path, address: str, port: int, *lines: str) -> list[str]:
    """Write sshd's configuration beside its keys; return the command that runs it in the foreground."""
    if os.geteuid() == 0:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    settings = (
        f"ListenAddress {address}:{port}",
        f"HostKey {directory / 'host'}",
        f"AuthorizedKeysFile {directory / 'authorized'}",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin prohibit-password",
        "AllowTcpForwarding local",
        *lines,
    )
    (directory / "sshd_config").write_text("\n".join(settings) + "\n")
    return [tool("sshd", "openssh-server"), "-D", "-e", "-f", str(directory / "sshd_config")]


@dataclass
class Sshd:
    """Debian's sshd on loopback, which admits this process's own user by a new key."""

    command: list[str]
    user: str
    port: int
    files: KeyFiles
    logins: int = 0

    async def start(self) -> None:
        """Run it in the foreground, and wait until it listens."""
        self._process = await asyncio.create_subprocess_exec(
            *killed_with_parent(self.command), stderr=asyncio.subprocess.PIPE
        )
        started = asyncio.Event()
        self._reading = asyncio.create_task(self._read_on(self._process, started))
        async with asyncio.timeout(PATIENCE):
            await started.wait()

    async def stop(self) -> None:
        """End it, and its connections."""
        sessions = self._sessions()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        _kill(sessions)  # first: they hold the pipe, for which we also wait
        await self._process.wait()
        await self._reading

    async def cut(self) -> None:
        """End its connections, each of which is a process, and continue to listen."""
        _kill(self._sessions())

    def _sessions(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).children(recursive=True)
        return []

    async def _read_on(self, process: asyncio.subprocess.Process, started: asyncio.Event) -> None:
        """Read sshd's output, so that it never waits for a reader; pytest shows it when a test fails."""
        assert process.stderr
        async for line in process.stderr:
            print("sshd:", line.decode().rstrip())
            self.logins += b"Accepted publickey" in line
            if b"Server listening" in line:
                started.set()


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@contextlib.asynccontextmanager
async def sshd(directory: Path, permitted: str = "") -> AsyncIterator[Sshd]:
    """A listening server; see ``ssh.MakeServer``."""
    files = write_keys(directory)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    lines = [f"PermitOpen {permitted}"] if permitted else []
    server = Sshd(configured(directory, "127.0.0.1", port, *lines), getpass.getuser(), port, files)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
