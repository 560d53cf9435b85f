"""Both ends of a tunnel by SSH on loopback, and strangers who try their keys on it."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator

import asyncssh

from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import Side, Transport
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.ssh.client import SshClient
from appliance.tunnel.ssh.keys import LinkKeys, derived_keys
from appliance.tunnel.ssh.server import SshServer
from appliance.tunnel.targets import Resolve
from tests.support.tunnel import HOST, LINK, PATIENCE, SECRET, Handler, Link, Resolver, target_server, tunnel_settings

USER = "replicator"


@functools.cache
def keys(side: Side, secret: str = SECRET, link: str = LINK) -> LinkKeys:
    """One end's keys; cached, because the derivation is meant to be slow."""
    return derived_keys(Secret(secret), link, side)


@contextlib.asynccontextmanager
async def running_server(
    target: Target,
    resolver: Resolve | None = None,
    deadlines: Deadlines | None = None,
    end: LinkKeys | None = None,
    **changes: object,
) -> AsyncIterator[SshServer]:
    """The source's end alone, which may dial ``target``."""
    settings = tunnel_settings(target, transport=Transport.SSH, **changes)
    resolve = resolver or Resolver({target.host: ["127.0.0.1"]})
    async with (
        asyncio.timeout(PATIENCE),
        SshServer(settings, end or keys(Side.SOURCE), resolve, deadlines) as server,
    ):
        yield server


@contextlib.asynccontextmanager
async def running_client(
    target: Target, port: int, end: LinkKeys | None = None, deadlines: Deadlines | None = None, **changes: object
) -> AsyncIterator[tuple[SshClient, int]]:
    """The destination's end alone, dialling ``port``, and the port of its endpoint for ``target``."""
    settings = tunnel_settings(target, port=port, transport=Transport.SSH, **changes)
    async with SshClient(settings, end or keys(Side.DESTINATION), deadlines) as client:
        yield client, await client.open_endpoint(target, "127.0.0.1", 0)


@contextlib.asynccontextmanager
async def link_to(
    handler: Handler, deadlines: Deadlines | None = None, resolve: Resolve | None = None, **changes: object
) -> AsyncIterator[Link]:
    """A tunnel to a target that treats its connections with ``handler``."""
    async with target_server(handler) as port:
        target = Target(HOST, port)
        resolver = Resolver({HOST: ["127.0.0.1"]})
        async with (
            running_server(target, resolve or resolver, deadlines, **changes) as server,
            running_client(target, server.port, deadlines=deadlines) as (client, endpoint),
        ):
            yield Link(server, client, resolver, target, endpoint)


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
