"""The source VM's end by SSH: a server that knows one user with one key, and ``direct-tcpip`` to the allow-list.

What asyncssh asks of a server and this one does not answer is refused: sessions, and with them shells, commands,
subsystems, agent and X11; listening for the client; Unix sockets; network devices. Passwords and every other way to log
in are not offered.
"""

import asyncio
from typing import Self

import asyncssh

from appliance.errors import ApplianceError, TargetRefused, Unreachable
from appliance.listening import port_refused
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tunnel.connections import Connections
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.listen import BACKLOG
from appliance.tunnel.slots import Slots
from appliance.tunnel.ssh.channel import SshChannel
from appliance.tunnel.ssh.errors import one_line, open_failure
from appliance.tunnel.ssh.keys import LinkKeys
from appliance.tunnel.ssh.options import server_options
from appliance.tunnel.ssh.peer import Logins, Opening, Peer
from appliance.tunnel.tally import Tally
from appliance.tunnel.targets import Resolve, Targets


class SshServer:
    """Listens from ``start`` to ``drain``, or as a context manager.

    Args:
        settings: where to listen (port 0 for any), who may log in, what may be dialled, how many connections.
        keys: the source's.
        resolve: finds the addresses of an allowed target.
    """

    def __init__(
        self, settings: TunnelSettings, keys: LinkKeys, resolve: Resolve, deadlines: Deadlines | None = None
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._deadlines = deadlines or Deadlines()
        self.tally = Tally()
        self._connections = Connections(self.tally)
        self._slots = Slots(settings.connections_max, self._deadlines.slot, self.tally)
        self._targets = Targets(settings, resolve, self._deadlines, self.tally)
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._draining = False
        self._logins = Logins(settings, keys, self.tally)
        self.port = settings.listen.port

    async def start(self) -> None:
        """Listen; ``port`` is known then.

        Raises:
            SettingsError: the system does not give the port.
        """
        options = server_options(self._keys, self._deadlines, lambda: Peer(self._logins, self._open))
        listen = self._settings.listen
        with port_refused("TUNNEL_LISTEN, TUNNEL_PORT", listen):
            self._acceptor = await asyncssh.listen(
                listen.host.strip("[]"), listen.port, config=None, options=options, backlog=BACKLOG
            )
        self.port = self._acceptor.get_port()

    @property
    def listening(self) -> bool:
        """Whether new connections are accepted."""
        return self._acceptor is not None and not self._draining

    async def drain(self, seconds: float) -> None:
        """Accept no more, let what runs end within ``seconds``, end the rest."""
        self._draining = True
        if self._acceptor:
            self._acceptor.close()
        await self._connections.drain(seconds)
        await self._logins.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.drain(0)

    def _open(self, connection: asyncssh.SSHServerConnection, peer: str, host: str, port: int) -> Opening:
        """The channel that a client has asked for, which will open when its target has answered."""
        if self._draining:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "the tunnel server is stopping")
        try:
            target = Target.parse(f"{host}:{port}")
        except ValueError as error:
            raise open_failure(TargetRefused(f"{one_line(host)}:{port} is no host:port")) from error
        near = _Requested(connection, peer)
        self.tally.accepted += 1
        self._connections.start(near, self._serve(near, target), f"tunnel connection from {peer}")
        return near.share, near.opening

    async def _serve(self, near: "_Requested", target: Target) -> None:
        try:
            async with self._slots.slot():
                await self._carry(near, target)
        except Unreachable as error:
            near.refuse(error)

    async def _carry(self, near: "_Requested", target: Target) -> None:
        try:
            far = await self._targets.dial(target)
        except ApplianceError as error:
            near.refuse(error)
            return
        try:
            if await near.accept():
                await self._targets.carry(near, far, target)
        finally:
            far.reset()


class _Requested(SshChannel):
    """A channel that the client has asked for, and waits to hear of.

    ``opening`` is what asyncssh awaits before it answers.
    """

    def __init__(self, connection: asyncssh.SSHServerConnection, peer: str) -> None:
        super().__init__(connection, peer)
        self.opening: asyncio.Future[SshChannel] = asyncio.get_running_loop().create_future()

    async def accept(self) -> bool:
        """Open the channel; false when the client has gone meanwhile."""
        self.opening.set_result(self)
        return await self.stands()

    def refuse(self, error: ApplianceError) -> None:
        """Tell the client of ``error`` instead."""
        self.opening.set_exception(open_failure(error))

    def reset(self) -> None:
        """Close now, or do not open."""
        if not self.opening.done():
            self.refuse(Unreachable("the tunnel server is stopping"))
        super().reset()
