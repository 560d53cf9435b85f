"""The source VM's end by SSH: a server that knows one user with one key, and ``direct-tcpip`` to the allow-list.

What asyncssh asks of a server and this one does not answer is refused: sessions, and with them shells, commands,
subsystems, agent and X11; listening for the client; Unix sockets; network devices. Passwords and every other way to log
in are not offered.
"""

import asyncio
import logging
import time
from typing import Self

import asyncssh

from appliance.errors import ApplianceError, IdentityRefused, PeerError, TargetRefused, Unreachable
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings
from appliance.tunnel.connections import Connections
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.listen import BACKLOG, port_refused
from appliance.tunnel.report import Report
from appliance.tunnel.slots import Slots
from appliance.tunnel.ssh.channel import SshChannel
from appliance.tunnel.ssh.errors import connection_error, one_line, open_failure
from appliance.tunnel.ssh.keys import LinkKeys
from appliance.tunnel.ssh.options import server_options
from appliance.tunnel.strangers import Strangers
from appliance.tunnel.tally import Refusal, Tally
from appliance.tunnel.targets import Resolve, Targets

KEYS_MAX = 6
"""Keys that a connection may offer: as many as OpenSSH's own server bears."""

REMEDY = (
    "SHARED_SECRET, SOURCE_CLUSTER_ID, DESTINATION_CLUSTER_ID and TUNNEL_SSH_USER must be the same on both VMs, or "
    "TUNNEL_SSH_PEER_KEYS_FILE of each hold the public key of the other's TUNNEL_SSH_KEY_FILE"
)
"""What to change when an identity is refused."""

log = logging.getLogger("appliance.tunnel")

_PEER_LINES = (
    (IdentityRefused, f"tunnel client refused: {REMEDY}"),
    (TargetRefused, "target refused: the tunnel goes to names only"),
    (PeerError, "tunnel port dialled by something else than an SSH client with today's algorithms"),
    (Unreachable, "tunnel port dialled by somebody who hung up before logging in"),
)


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
        self._slots = Slots(settings.connections_max, self._deadlines.slot)
        self._targets = Targets(settings, resolve, self._deadlines, self.tally)
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._draining = False
        self.logins = _Logins(settings, keys, self.tally)
        self.port = settings.listen.port

    async def start(self) -> None:
        """Listen; ``port`` is known then.

        Raises:
            SettingsError: the system does not give the port.
        """
        options = server_options(self._keys, self._deadlines, lambda: _Peer(self))
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
        await self.logins.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.drain(0)

    def open_to(self, connection: asyncssh.SSHServerConnection, peer: str, host: str, port: int) -> "_Requested":
        """The channel that a client has asked for, which will open when its target has answered.

        Raises:
            asyncssh.ChannelOpenError: there will be none.
        """
        if self._draining:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "the tunnel server is stopping")
        try:
            target = Target.parse(f"{host}:{port}")
        except ValueError as error:
            raise open_failure(TargetRefused(f"{one_line(host)}:{port} is no host:port")) from error
        near = _Requested(connection, peer)
        self.tally.accepted += 1
        self._connections.start(near, self._serve(near, target), f"tunnel connection from {peer}")
        return near

    async def _serve(self, near: "_Requested", target: Target) -> None:
        try:
            async with self._slots.slot():
                await self._carry(near, target)
        except Unreachable as error:
            self.tally.refused[Refusal.FULL] += 1
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


class _Logins:
    """Who is connected, and who may be."""

    def __init__(self, settings: TunnelSettings, keys: LinkKeys, tally: Tally) -> None:
        self._user = settings.ssh.user
        self._accepted = {key.public_data for key in keys.peers}
        self._tally = tally
        self._crowd = Strangers(settings.peer_address)
        self._strangers: dict[_Peer, float] = {}
        self._known: set[_Peer] = set()
        self._report = Report("peer", _PEER_LINES, "tunnel client accepted")

    def accepts(self, user: str, key: asyncssh.SSHKey) -> bool:
        """Whether this is the other end; that it holds the private key, asyncssh finds out."""
        return user == self._user and key.public_data in self._accepted

    def arrived(self, peer: "_Peer") -> bool:
        """Somebody has connected; whether there is room for one more who has not proved who they are."""
        admitted = self._crowd.admits(peer.host)
        if admitted:
            self._crowd.arrived(peer.host)
            self._strangers[peer] = time.monotonic()
        else:
            self._tally.refused[Refusal.CROWD] += 1
        return admitted

    def proved(self, peer: "_Peer") -> None:
        """It is the other end."""
        self._tally.handshakes.observe(time.monotonic() - self._strangers.pop(peer))
        self._crowd.left(peer.host)
        self._known.add(peer)
        self._report.succeeded(peer.host)

    def left(self, peer: "_Peer", error: ApplianceError) -> None:
        """It is gone, by ``error``."""
        if self._strangers.pop(peer, None) is not None:
            self._crowd.left(peer.host)
            self._report.failed(peer.host, error)
            self._tally.peer_failed(error)
        self._known.discard(peer)

    async def close(self) -> None:
        """End every connection."""
        for peer in [*self._strangers, *self._known]:
            await peer.close()


class _Peer(asyncssh.SSHServer):
    """What one SSH connection is told."""

    def __init__(self, server: SshServer) -> None:
        self._server = server
        self._connection: asyncssh.SSHServerConnection
        self._refused: list[str] = []
        self.host = "unknown"
        self._port = 0

    async def close(self) -> None:
        """End the connection."""
        self._connection.close()
        await self._connection.wait_closed()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Called by asyncssh: the TCP connection stands."""
        self._connection = conn
        self.host, self._port, *_ = conn.get_extra_info("peername") or (self.host, 0)
        if not self._server.logins.arrived(self):
            conn.abort()

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """Called by asyncssh: whether ``username`` has to prove who it is."""
        return True

    def public_key_auth_supported(self) -> bool:
        """Called by asyncssh: a key is the only way to prove it."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Called by asyncssh: whether ``username`` may log in with ``key``."""
        if self._server.logins.accepts(username, key):
            return True
        self._refused.append(f"{one_line(username)} with {key.get_fingerprint()}")
        if len(self._refused) >= KEYS_MAX:
            raise asyncssh.PermissionDenied("too many keys")
        return False

    def auth_completed(self) -> None:
        """Called by asyncssh: the other end has proved who it is."""
        self._server.logins.proved(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh: the connection is closed."""
        refused = IdentityRefused(f"not accepted: {', '.join(self._refused)}") if self._refused else None
        self._server.logins.left(self, refused or connection_error(exc))

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002
        orig_port: int,  # noqa: ARG002
    ) -> tuple[asyncssh.SSHTCPChannel[bytes], "asyncio.Future[SshChannel]"]:
        """Called by asyncssh: the client asks for a channel to a target."""
        near = self._server.open_to(self._connection, f"{self.host}:{self._port}", dest_host, dest_port)
        return near.share, near.opening
