"""The ends of the tunnel, by the transport that the settings name.

SSH's are imported only where they are used: its library takes longer to load than all the rest.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from appliance.settings.target import Target
from appliance.settings.values import Side, Transport, TunnelSettings
from appliance.tunnel.client import EndpointClient, TunnelClient
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.identity import Identity
from appliance.tunnel.probe import Asked, TlsProbe
from appliance.tunnel.renewal import Renewal
from appliance.tunnel.server import TunnelServer
from appliance.tunnel.tally import Tally
from appliance.tunnel.targets import Resolve


class Server(Protocol):
    """The source's end, while it listens."""

    port: int
    tally: Tally

    @property
    def listening(self) -> bool:
        """Whether new connections are accepted."""

    async def drain(self, seconds: float) -> None:
        """Accept no more, let what runs end within ``seconds``, end the rest."""


class Probe(Protocol):
    """Tries the tunnel from the destination's end; see ``TlsProbe``."""

    async def dial(self) -> None:
        """Learn that somebody is there."""

    async def greet(self) -> None:
        """Learn that it is the server."""

    async def ask(self, target: Target) -> Asked:
        """Have the server connect us to a target, and hang up."""

    async def skew(self) -> float | None:
        """Seconds by which the server's clock is ahead of ours, if that is why it does not answer."""

    def days_left(self) -> Mapping[Side, float]:
        """Days until either end's certificate is no longer valid, as far as they are known."""

    async def close(self) -> None:
        """Hang up."""


@contextlib.asynccontextmanager
async def server_of(tunnel: TunnelSettings, resolve: Resolve) -> AsyncIterator[Server]:
    """The source's end, listening.

    Raises:
        SettingsError: the port cannot be had, or a file of the identity is not what it has to be.
    """
    if tunnel.transport is Transport.SSH:
        from appliance.tunnel.ssh.keys import link_keys
        from appliance.tunnel.ssh.server import SshServer

        async with SshServer(tunnel, link_keys(tunnel, Side.SOURCE), resolve) as by_ssh:
            yield by_ssh
    else:
        async with Renewal(tunnel, Side.SOURCE) as identity, TunnelServer(tunnel, identity, resolve) as by_tls:
            yield by_tls


@contextlib.asynccontextmanager
async def client_of(tunnel: TunnelSettings) -> AsyncIterator[EndpointClient]:
    """The destination's end.

    Raises:
        SettingsError: a file of the identity is not what it has to be.
    """
    if tunnel.transport is Transport.SSH:
        from appliance.tunnel.ssh.client import SshClient
        from appliance.tunnel.ssh.keys import link_keys

        async with SshClient(tunnel, link_keys(tunnel, Side.DESTINATION)) as by_ssh:
            yield by_ssh
    else:
        async with Renewal(tunnel, Side.DESTINATION) as identity, TunnelClient(tunnel, identity) as by_tls:
            yield by_tls


def probe_of(tunnel: TunnelSettings, deadlines: Deadlines) -> Probe:
    """What tries the tunnel as the destination's end.

    Raises:
        SettingsError: a file of the identity is not what it has to be.
    """
    if tunnel.transport is Transport.SSH:
        from appliance.tunnel.ssh.keys import link_keys
        from appliance.tunnel.ssh.probe import SshProbe

        return SshProbe(tunnel, link_keys(tunnel, Side.DESTINATION), deadlines)
    return TlsProbe(tunnel, Identity.of(tunnel, Side.DESTINATION), deadlines)
