"""OpenSSH itself: its server with a configuration of our own, and its client as a stranger to ours."""

import asyncio
import contextlib
import getpass
import os
import shutil
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest

from appliance.owned import owned
from appliance.settings.values import KeyFiles

PRIVILEGE_SEPARATION = Path("/run/sshd")
"""Where sshd wants an empty folder when it is root; Debian's service makes it."""

PATIENCE = 20.0
"""Seconds that a program of OpenSSH's may take."""


def tool(name: str, package: str) -> str:
    """The path of a program; the test fails when the Debian package that has it is not installed."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not found:
        pytest.fail(f"{name} is missing: sudo apt-get install {package}", pytrace=False)
    return found


def write_private(path: Path, key: asyncssh.SSHKey) -> Path:
    """A private key's file, as OpenSSH wants it."""
    path.write_bytes(key.export_private_key("openssh"))
    path.chmod(0o600)
    return path


def write_public(path: Path, *keys: asyncssh.SSHKey) -> Path:
    """A file of public keys, one a line."""
    path.write_bytes(b"".join(key.export_public_key("openssh") for key in keys))
    return path


@dataclass
class Sshd:
    """A running sshd, and the files by which its only user logs in."""

    user: str
    port: int
    files: KeyFiles
    process: asyncio.subprocess.Process

    async def stop(self) -> None:
        """End it, and wait."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        await self.process.wait()


@contextlib.asynccontextmanager
async def sshd(directory: Path, *configuration: str) -> AsyncIterator[Sshd]:
    """Debian's sshd on loopback, in the foreground, which lets this process's own user in by a new key."""
    port, files = _prepare(directory, configuration)
    process = await asyncio.create_subprocess_exec(
        *owned([tool("sshd", "openssh-server"), "-D", "-e", "-f", str(directory / "sshd_config")]),
        stderr=asyncio.subprocess.PIPE,
    )
    running = Sshd(getpass.getuser(), port, files, process)
    started = asyncio.Event()
    reading = asyncio.create_task(_read_on(process, started))
    try:
        async with asyncio.timeout(PATIENCE):
            await started.wait()
        async with asyncio.timeout(3 * PATIENCE):
            yield running
    finally:
        await running.stop()
        await reading


def _prepare(directory: Path, configuration: Sequence[str]) -> tuple[int, KeyFiles]:
    """Write sshd's files; its port, which was free a moment ago, and those by which a client logs in."""
    directory.mkdir()
    if os.geteuid() == 0:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    host, client = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    settings = (
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {write_private(directory / 'host', host)}",
        f"AuthorizedKeysFile {write_public(directory / 'authorized', client)}",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin prohibit-password",
        *configuration,
    )
    (directory / "sshd_config").write_text("\n".join(settings) + "\n")
    files = KeyFiles(write_private(directory / "client", client), write_public(directory / "host.pub", host))
    return port, files


async def _read_on(process: asyncio.subprocess.Process, started: asyncio.Event) -> None:
    """Take what sshd says, so that it never waits for a reader; pytest shows it when a test fails."""
    assert process.stderr
    async for line in process.stderr:
        print("sshd:", line.decode().rstrip())
        if b"Server listening" in line:
            started.set()


@dataclass(frozen=True)
class Said:
    """What a program said, and with what it ended."""

    status: int
    output: bytes
    errors: str


@dataclass(frozen=True)
class Stranger:
    """OpenSSH's client, which knows a server and holds a key."""

    port: int
    user: str
    key: Path
    known_hosts: Path

    async def ssh(self, *arguments: str, given: bytes = b"", program: str = "ssh") -> Said:
        """Run ``ssh`` (or ``sftp``) with options, which come before the host, and then a command after ``--``."""
        options, _, command = (list(part) for part in _split(arguments))
        process = await asyncio.create_subprocess_exec(
            tool(program, "openssh-client"),
            *("-F", "none", "-i", str(self.key), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"),
            *("-o", f"UserKnownHostsFile={self.known_hosts}", "-o", "GlobalKnownHostsFile=none"),
            *("-o", "StrictHostKeyChecking=yes", "-o", f"Port={self.port}", *options, f"{self.user}@127.0.0.1"),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                output, errors = await process.communicate(given)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Said(process.returncode or 0, output, errors.decode())


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    where = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:where], arguments[where : where + 1], arguments[where + 1 :]
