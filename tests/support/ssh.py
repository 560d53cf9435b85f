"""The tunnel on loopback inside SSH: its client, an independent SSH server, and the same tunnel server as without.

The SSH server here is asyncssh's, which every machine with the tests has; ``openssh`` has the users' one.
"""

import contextlib
import getpass
import logging
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import asyncssh

from appliance.settings.target import Login, Target
from appliance.settings.values import KeyFiles, SshSettings
from appliance.tls.identity import Identity
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.ssh.transport import WINDOW_MAX
from tests.support.tls import identity
from tests.support.tunnel import Ends


class SshServer(Protocol):
    """An SSH server that admits one user, for forwarding."""

    user: str
    port: int
    files: KeyFiles
    logins: int

    async def start(self) -> None:
        """Listen on its port, with the current files."""

    async def stop(self) -> None:
        """End it, and its connections."""

    async def cut(self) -> None:
        """End its connections, and continue to listen."""


MakeServer = Callable[[Path, str], AbstractAsyncContextManager[SshServer]]
"""An SSH server with its files in a new directory, which forwards only to host:port, or to all targets for ""."""


def new_key() -> asyncssh.SSHKey:
    """A key of a type that the tunnel accepts."""
    return asyncssh.generate_private_key("ssh-ed25519")


def write_private(path: Path, key: asyncssh.SSHKey) -> Path:
    """Write a private key's file in OpenSSH's format."""
    path.write_bytes(key.export_private_key("openssh"))
    path.chmod(0o600)
    return path


def write_public(path: Path, *keys: asyncssh.SSHKey) -> Path:
    """Write a file of public keys, one on each line."""
    path.write_bytes(b"".join(key.export_public_key("openssh") for key in keys))
    return path


def write_keys(directory: Path) -> KeyFiles:
    """Create a directory with new keys, ``host`` and ``authorized`` for the server; return those for the client."""
    directory.mkdir()
    host, client = new_key(), new_key()
    write_private(directory / "host", host)
    write_public(directory / "authorized", client)
    return KeyFiles(write_private(directory / "client", client), write_public(directory / "pinned", host))


def through(server: SshServer) -> SshSettings:
    """The settings of a tunnel that an SSH server carries."""
    return SshSettings(Login(server.user, Target("127.0.0.1", server.port)), server.files)


@dataclass
class AsyncsshServer:
    """asyncssh's server, in this process."""

    directory: Path
    files: KeyFiles
    permitted: str
    user: str = field(default_factory=getpass.getuser)
    port: int = 0
    logins: int = 0
    _connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)

    async def start(self) -> None:
        """Listen on its port, with the current files."""
        asyncssh.set_log_level(logging.CRITICAL)  # its own log lines are not the tunnel's
        self._acceptor = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            config=None,
            server_factory=lambda: _Forwarder(self),
            server_host_keys=[str(self.directory / "host")],
            reuse_address=True,
        )
        self.port = self._acceptor.get_port()

    async def stop(self) -> None:
        """End it, and its connections."""
        self._acceptor.close()
        await self.cut()
        await self._acceptor.wait_closed()

    async def cut(self) -> None:
        """End its connections, and continue to listen."""
        while self._connections:
            connection = self._connections.pop()
            connection.abort()
            await connection.wait_closed()

    def admitted(self, connection: asyncssh.SSHServerConnection) -> None:
        """Called by asyncssh: a user has logged in."""
        self.logins += 1
        self._connections.append(connection)


class _Forwarder(asyncssh.SSHServer):
    def __init__(self, server: AsyncsshServer) -> None:
        self._server = server
        self._connection: asyncssh.SSHServerConnection

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        authorized = asyncssh.read_public_key_list(self._server.directory / "authorized")
        return username == getpass.getuser() and key in authorized

    def auth_completed(self) -> None:
        self._server.admitted(self._connection)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:  # noqa: ARG002
        if self._server.permitted not in ("", f"{dest_host}:{dest_port}"):
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")
        return True


@contextlib.asynccontextmanager
async def asyncssh_server(directory: Path, permitted: str = "") -> AsyncIterator[AsyncsshServer]:
    """A listening server; see ``MakeServer``."""
    server = AsyncsshServer(directory, write_keys(directory), permitted)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@dataclass(frozen=True)
class InsideSsh(Ends):
    """The two ends of a tunnel whose client uses its own SSH server."""

    server: MakeServer = asyncssh_server

    @contextlib.asynccontextmanager
    async def running_client(
        self,
        target: Target,
        port: int,
        end: Identity | None = None,
        timeouts: Timeouts | None = None,
        **changes: object,
    ) -> AsyncIterator[tuple[TunnelClient, int]]:
        """Run the client through an SSH server."""
        with tempfile.TemporaryDirectory() as directory:
            async with (
                self.server(Path(directory, "ssh"), "") as server,
                super().running_client(target, port, end, timeouts, ssh=through(server), **changes) as running,
            ):
                yield running


def inside_ssh(server: MakeServer) -> InsideSsh:
    """The tunnel through an SSH server of this kind."""
    return InsideSsh(identity, hops=4, window=2 * WINDOW_MAX, server=server)
