"""Who is connected to the source's end by SSH, and who may be: one user with one key, however it is asked."""

import asyncio
import time
from collections.abc import Callable

import asyncssh

from appliance.errors import ApplianceError, IdentityRefused, PeerError, Unreachable
from appliance.settings.values import TunnelSettings
from appliance.tunnel.report import Report
from appliance.tunnel.ssh.channel import SshChannel
from appliance.tunnel.ssh.errors import connection_error, one_line
from appliance.tunnel.ssh.keys import LinkKeys
from appliance.tunnel.strangers import Strangers
from appliance.tunnel.tally import Tally

KEYS_MAX = 6
"""Keys that a connection may offer: as many as OpenSSH's own server bears."""

REMEDY = (
    "SHARED_SECRET, SOURCE_CLUSTER_ID, DESTINATION_CLUSTER_ID and TUNNEL_SSH_USER must be the same on both VMs, or "
    "TUNNEL_SSH_PEER_KEYS_FILE of each hold the public key of the other's TUNNEL_SSH_KEY_FILE"
)
"""What to change when an identity is refused."""

Opening = tuple[asyncssh.SSHTCPChannel[bytes], asyncio.Future[SshChannel]]
"""A channel that is being opened, and what is done when it is."""

Request = Callable[[asyncssh.SSHServerConnection, str, str, int], Opening]
"""From a connection, its peer for the log, a host and a port to a channel; raises ChannelOpenError for none."""

_PEER_LINES = (
    (IdentityRefused, f"tunnel client refused: {REMEDY}"),
    (PeerError, "tunnel port dialled by something else than an SSH client with today's algorithms"),
    (Unreachable, "tunnel port dialled by somebody who hung up before logging in"),
)


class Logins:
    """Who is connected, and who may be."""

    def __init__(self, settings: TunnelSettings, keys: LinkKeys, tally: Tally) -> None:
        self._user = settings.ssh.user
        self._accepted = {key.public_data for key in keys.peers}
        self._tally = tally
        self._crowd = Strangers(settings.peer_address, tally)
        self._strangers: dict[Peer, float] = {}
        self._known: set[Peer] = set()
        self._report = Report("peer", _PEER_LINES, "tunnel client accepted")

    def accepts(self, user: str, key: asyncssh.SSHKey) -> bool:
        """Whether this is the other end; that it holds the private key, asyncssh finds out."""
        return user == self._user and key.public_data in self._accepted

    def admits(self, peer: "Peer") -> bool:
        """Whether there is room for somebody who has connected, and has not proved who they are."""
        admitted = self._crowd.admits(peer.host)
        if admitted:
            self._crowd.arrived(peer.host)
            self._strangers[peer] = time.monotonic()
        return admitted

    def proved(self, peer: "Peer") -> None:
        """It is the other end."""
        self._tally.handshakes.observe(time.monotonic() - self._strangers.pop(peer))
        self._crowd.left(peer.host)
        self._known.add(peer)
        self._report.succeeded(peer.host)

    def left(self, peer: "Peer", error: ApplianceError) -> None:
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


class Peer(asyncssh.SSHServer):
    """One SSH connection, as asyncssh asks about it: what has no answer here, it refuses.

    Args:
        logins: who may come in.
        request: makes the channels that the other end asks for.
    """

    def __init__(self, logins: Logins, request: Request) -> None:
        self._logins = logins
        self._request = request
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
        if not self._logins.admits(self):
            conn.abort()

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """Called by asyncssh: whether ``username`` has to prove who it is."""
        return True

    def public_key_auth_supported(self) -> bool:
        """Called by asyncssh: a key is the only way to prove it."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Called by asyncssh: whether ``username`` may log in with ``key``."""
        if self._logins.accepts(username, key):
            return True
        self._refused.append(f"{one_line(username)} with {key.get_fingerprint()}")
        if len(self._refused) >= KEYS_MAX:
            raise asyncssh.PermissionDenied("too many keys")
        return False

    def auth_completed(self) -> None:
        """Called by asyncssh: the other end has proved who it is."""
        self._logins.proved(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh: the connection is closed."""
        refused = IdentityRefused(f"not accepted: {', '.join(self._refused)}") if self._refused else None
        self._logins.left(self, refused or connection_error(exc))

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002
        orig_port: int,  # noqa: ARG002
    ) -> Opening:
        """Called by asyncssh: the client asks for a channel to a target."""
        return self._request(self._connection, f"{self.host}:{self._port}", dest_host, dest_port)
