"""The one SSH connection, made on first use and again after a loss, and its channels."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import TypeVar

import asyncssh

from appliance.clock import deadline
from appliance.errors import SshUnreachable, TimedOut, os_reason
from appliance.settings.target import Target
from appliance.settings.values import SshSettings
from appliance.tunnel.model.connect import Timeouts, one_line
from appliance.tunnel.ssh.options import channel_error, client_options, connection_error
from appliance.tunnel.ssh.transport import ChannelSession, Windows
from appliance.tunnel.stream.tcp_channel import TcpChannel

log = logging.getLogger("appliance.tunnel")

_Kind = TypeVar("_Kind", bound=TcpChannel)
_Opened = tuple[asyncssh.SSHTCPChannel[bytes], asyncssh.SSHTCPSession[bytes]]


class SshCarrier:
    """Dials the tunnel server through an SSH server."""

    def __init__(self, settings: SshSettings, server: Target, timeouts: Timeouts) -> None:
        self._settings = settings
        self._server = server
        self._timeouts = timeouts
        self._windows = Windows()
        self._connecting: asyncio.Task[asyncssh.SSHClientConnection] | None = None
        self._closing = False

    async def login(self) -> None:
        """Make the SSH connection, unless there is one."""
        await self._connection()

    async def dial(self, make: Callable[[], _Kind]) -> _Kind:
        """A channel to the tunnel server, once the SSH connection stands.

        Raises:
            ForwardRefused: the SSH server does not forward there.
        """
        connection = await self._connection()
        protocol, seconds = make(), self._timeouts.dial
        opening = asyncio.create_task(self._open(connection, protocol), name="channel of the tunnel's SSH connection")
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(opening)
        except BaseException as error:
            # Not cancelled: the server opens it all the same, and it has to be closed then.
            opening.add_done_callback(_close_when_open)
            if isinstance(error, TimeoutError):
                raise TimedOut(
                    f"{self._settings.login} opened no channel to {self._server} in {seconds:g} s"
                ) from error
            raise
        return protocol

    async def close(self) -> None:
        """End the SSH connection, and all channels with it."""
        self._closing = True
        task, self._connecting = self._connecting, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and not task.exception():
            task.result().close()
            await task.result().wait_closed()

    async def _connection(self) -> asyncssh.SSHClientConnection:
        """The one connection; while it is being made, all callers wait for it together."""
        if self._connecting is None or _is_over(self._connecting):
            self._connecting = asyncio.create_task(self._connect(), name="tunnel's SSH connection")
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> asyncssh.SSHClientConnection:
        options = client_options(self._settings, self._timeouts)
        login, seconds = self._settings.login, self._timeouts.dial + self._timeouts.handshake
        try:
            async with deadline(seconds, f"no SSH connection with {login.server}", SshUnreachable):
                connection = await asyncssh.connect(
                    login.server.host.strip("[]"),
                    login.server.port,
                    config=None,
                    options=options,
                    client_factory=lambda: _Owner(self._lost),
                )
        except socket.gaierror as error:
            raise SshUnreachable(f"no address for {login.server.host}: {error.strerror}") from error
        except OSError as error:
            raise SshUnreachable(f"{login.server}: {one_line(os_reason(error)).lower()}") from error
        except asyncssh.Error as error:
            raise connection_error(error) from error
        log.info("SSH connection made", extra={"fields": {"ssh": str(login)}})
        return connection

    async def _open(self, connection: asyncssh.SSHClientConnection, protocol: asyncio.BufferedProtocol) -> _Opened:
        window = self._windows.grant()

        def session() -> ChannelSession:
            return ChannelSession(protocol, self._server, lambda: self._windows.release(window))

        host, port = self._server.host.strip("[]"), self._server.port
        try:
            return await connection.create_connection(session, host, port, "127.0.0.1", 0, window=window)
        except Exception as error:
            self._windows.release(window)
            if connection.is_closed():
                raise SshUnreachable("SSH connection lost while it opened a channel") from error
            if isinstance(error, asyncssh.ChannelOpenError):
                raise channel_error(error, str(self._server)) from error
            raise connection_error(error) from error

    def _lost(self, error: Exception | None) -> None:
        if not self._closing:
            fields = {"ssh": str(self._settings.login), "cause": str(connection_error(error))}
            log.warning("SSH connection lost, and all connections in it", extra={"fields": fields})


class _Owner(asyncssh.SSHClient):
    """Reports the end of the connection, if it was ever established."""

    def __init__(self, lost: Callable[[Exception | None], None]) -> None:
        self._lost = lost
        self._stood = False

    def auth_completed(self) -> None:
        """Called by asyncssh: we are logged in."""
        self._stood = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh: the connection is closed."""
        if self._stood:
            self._lost(exc)


def _is_over(task: "asyncio.Task[asyncssh.SSHClientConnection]") -> bool:
    if not task.done():
        return False
    return task.cancelled() or task.exception() is not None or task.result().is_closed()


def _close_when_open(opening: "asyncio.Task[_Opened]") -> None:
    if not opening.cancelled() and not opening.exception():
        channel, _ = opening.result()
        channel.abort()
