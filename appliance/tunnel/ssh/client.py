"""The destination VM's end by SSH: one connection to the server, in which every endpoint's connection is a channel.

The server is the appliance's own, or an OpenSSH that was there before; then the allow-list of this end is the only one
of ours, and ``PermitOpen`` on the other is the operator's. The connection is made when the first endpoint is used, and
again when it was lost.
"""

import asyncio
import contextlib

import asyncssh

from appliance.errors import ApplianceError, IdentityRefused, PeerError, Unreachable
from appliance.settings.login import Login
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tunnel.access import check_target
from appliance.tunnel.channel import Channel
from appliance.tunnel.client import EndpointClient
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.report import Report
from appliance.tunnel.ssh.channel import SshChannel, open_channel
from appliance.tunnel.ssh.errors import connection_error
from appliance.tunnel.ssh.keys import LinkKeys, keys_in
from appliance.tunnel.ssh.peer import REMEDY
from appliance.tunnel.ssh.route import Hop

_SERVER_LINES = (
    (IdentityRefused, f"tunnel refused, the two ends do not believe each other: {REMEDY}"),
    (PeerError, "tunnel refused, what answers is no SSH server: check SOURCE_SIDE_TUNNEL_IP and TUNNEL_PORT"),
    (
        Unreachable,
        "tunnel server unreachable: check SOURCE_SIDE_TUNNEL_IP and TUNNEL_PORT, that the source VM is up, "
        "and that its firewall lets this VM or the bastion in",
    ),
)
_BASTION_LINES = (
    (
        IdentityRefused,
        "bastion refused: check TUNNEL_SSH_BASTION, TUNNEL_SSH_BASTION_KEY_FILE, "
        "and that TUNNEL_SSH_BASTION_HOST_KEYS_FILE holds its Ed25519 key",
    ),
    (PeerError, "bastion refused, what answers is no SSH server with an Ed25519 key: check TUNNEL_SSH_BASTION"),
    (Unreachable, "bastion unreachable: check TUNNEL_SSH_BASTION, and that its firewall lets this VM in"),
)


class SshClient(EndpointClient):
    """The client whose connections are channels of one SSH connection.

    Args:
        settings: where the server is, as whom to log in, whether through a bastion, how many connections.
        keys: the destination's.

    Raises:
        SettingsError: a bastion's key file is not what it has to be.
    """

    _server_lines = _SERVER_LINES

    def __init__(self, settings: TunnelSettings, keys: LinkKeys, deadlines: Deadlines | None = None) -> None:
        super().__init__(settings, deadlines)
        self._server = Hop(Login(settings.ssh.user, settings.server), keys, self._deadlines)
        bastion = settings.ssh.bastion
        self._bastion = Hop(bastion.login, keys_in(bastion.files), self._deadlines) if bastion else None
        self._bastions = Report("bastion", _BASTION_LINES, "bastion reached again")
        self._connecting: asyncio.Task[asyncssh.SSHClientConnection] | None = None

    async def drain(self, seconds: float) -> None:
        """Close every endpoint, let the connections that run end within ``seconds``, end the rest."""
        await super().drain(seconds)
        task, self._connecting = self._connecting, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and not task.exception():
            task.result().close()
            await task.result().wait_closed()

    async def _reach(self, near: Channel, target: Target) -> Channel | None:  # noqa: ARG002
        if not self._admitted():
            return None
        try:
            connection = await self._connection()
        except ApplianceError:
            return None
        try:
            far = await self._open(connection, target)
        except ApplianceError as error:
            if not connection.is_closed():
                self._targets.failed(str(target), error)
                self.tally.target_failed(error)
            return None
        self._targets.succeeded(str(target))
        return far

    async def _open(self, connection: asyncssh.SSHClientConnection, target: Target) -> SshChannel:
        check_target(target, self._settings)
        return await open_channel(connection, target, self._deadlines.answer)

    async def _connection(self) -> asyncssh.SSHClientConnection:
        """The one connection, which all who ask for it while it is being made wait for together."""
        if self._connecting is None or _is_over(self._connecting):
            self._connecting = asyncio.create_task(self._connect(), name="tunnel's SSH connection")
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> asyncssh.SSHClientConnection:
        bastion = await self._connect_bastion(self._bastion) if self._bastion else None
        with contextlib.ExitStack() as unless_connected:
            if bastion:
                unless_connected.callback(bastion.abort)
            try:
                with self.tally.handshakes.timed():
                    connection = await self._server.connect(self._lost, bastion)
            except ApplianceError as error:
                self._server_failed(error)
                raise
            unless_connected.pop_all()
        connection.set_tunnel(bastion)  # so that it is closed with what runs in it
        self._server_succeeded()
        return connection

    async def _connect_bastion(self, bastion: Hop) -> asyncssh.SSHClientConnection:
        try:
            connection = await bastion.connect()
        except ApplianceError as error:
            self._breaker.failed(asyncio.get_running_loop().time())
            self._bastions.failed(str(bastion), error)
            self.tally.peer_failed(error)
            self.tally.server_fault = str(error)
            raise
        self._bastions.succeeded(str(bastion))
        return connection

    def _lost(self, error: Exception | None) -> None:
        if self._connecting and self._connecting.done():
            self._servers.failed(str(self._settings.server), connection_error(error))


def _is_over(task: "asyncio.Task[asyncssh.SSHClientConnection]") -> bool:
    if not task.done():
        return False
    return task.cancelled() or task.exception() is not None or task.result().is_closed()
