"""The tunnel by SSH tried from the destination's end; see ``tunnel.probe``."""

from collections.abc import Mapping

import asyncssh

from appliance.errors import ApplianceError
from appliance.settings.login import Login
from appliance.settings.target import Target
from appliance.settings.values import Side, TunnelSettings
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.dial import dial
from appliance.tunnel.probe import Asked
from appliance.tunnel.ssh.channel import open_channel
from appliance.tunnel.ssh.keys import LinkKeys, keys_in
from appliance.tunnel.ssh.route import Hop
from appliance.tunnel.tcp_channel import TcpChannel


class SshProbe:
    """Tries a tunnel by SSH, through the bastion if there is one.

    Args:
        settings: where the server is, and as whom to log in.
        keys: the destination's.
        deadlines: how long each step may take.

    Raises:
        SettingsError: a bastion's key file is not what it has to be.
    """

    def __init__(self, settings: TunnelSettings, keys: LinkKeys, deadlines: Deadlines) -> None:
        bastion = settings.ssh.bastion
        self._server = Hop(Login(settings.ssh.user, settings.server), keys, deadlines)
        self._bastion = Hop(bastion.login, keys_in(bastion.files), deadlines) if bastion else None
        self._first = bastion.login.server if bastion else settings.server
        self._deadlines = deadlines
        self._connections: list[asyncssh.SSHClientConnection] = []

    async def dial(self) -> None:
        """Connect to the server, or the bastion, and hang up.

        Raises:
            TimedOut, Unreachable: as ``tunnel.dial``.
        """
        channel = await dial((self._first.host.strip("[]"),), self._first.port, self._deadlines.dial, TcpChannel)
        channel.reset()

    async def greet(self) -> None:
        """Log in.

        Raises:
            Unreachable: nobody answers.
            PeerError: what answers is no SSH server with today's algorithms.
            IdentityRefused: one end does not believe the other.
        """
        through = None
        for hop in (self._bastion, self._server):
            if hop is not None:
                through = await hop.connect(through=through)
                self._connections.append(through)

    async def ask(self, target: Target) -> Asked:
        """Have the server connect a channel to ``target``, and close it."""
        if not self._connections:
            await self.greet()
        try:
            channel = await open_channel(self._connections[-1], target, self._deadlines.answer)
        except ApplianceError as error:
            return Asked(error)
        channel.send_eof()
        channel.close()
        return Asked(None)

    def days_left(self) -> Mapping[Side, float]:
        """Nothing: SSH keys have no end."""
        return {}

    async def skew(self) -> float | None:
        """Nothing: SSH does not tell the time."""
        return None

    async def close(self) -> None:
        """Hang up."""
        while self._connections:
            connection = self._connections.pop()
            connection.close()
            await connection.wait_closed()
