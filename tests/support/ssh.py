"""Both ends of a tunnel by SSH on loopback, and strangers who try their keys on it."""

import contextlib
import functools
from collections.abc import AsyncIterator

import asyncssh

from appliance.settings.secret import Secret
from appliance.settings.values import Side, Transport
from appliance.tunnel.ssh.client import SshClient
from appliance.tunnel.ssh.keys import LinkKeys, derived_keys
from appliance.tunnel.ssh.server import SshServer
from tests.support.tunnel import LINK, SECRET, Ends

USER = "replicator"


@functools.cache
def keys(side: Side, secret: str = SECRET, link: str = LINK) -> LinkKeys:
    """One end's keys; cached, because the derivation is meant to be slow."""
    return derived_keys(Secret(secret), link, side)


SSH = Ends(Transport.SSH, SshServer, SshClient, keys)
running_server, running_client, link_to = SSH.running_server, SSH.running_client, SSH.link_to


@contextlib.asynccontextmanager
async def logged_in(
    port: int, end: LinkKeys | None = None, **changes: object
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A plain SSH client's connection to a server: whose key is the destination's, who asks what it likes."""
    own = end or keys(Side.DESTINATION)
    trusted = (list(own.peers), [], [])
    options = {"username": USER, "client_keys": [own.own], "known_hosts": trusted, "agent_path": None} | changes
    async with asyncssh.connect("127.0.0.1", port, config=None, **options) as connection:
        yield connection
