"""``appliance source`` and ``appliance destination``: the two ends of the tunnel, each until it is stopped."""

import argparse
import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from appliance.dns.binding import AddressBook
from appliance.dns.server import DnsServer
from appliance.dns.stub import StubResolver, system_addresses
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.model.health import Keys
from appliance.gateway.status import DestinationStatus, FarEnd, SourceStatus, serving
from appliance.gateway.watcher import BrokerWatcher, resolver
from appliance.kafka.client.cluster import KafkaCluster
from appliance.runtime.background import in_background
from appliance.runtime.command import Command, Run, with_settings
from appliance.runtime.confinement import read_only
from appliance.settings.role import Role
from appliance.settings.values import Settings, Side, TunnelSettings
from appliance.tls.identity import Identity
from appliance.tunnel.broker_dialer import Resolve
from appliance.tunnel.certificate_reload import CertificateReload
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.dialler import carrier_of
from appliance.tunnel.limits.connection_limit import raise_fd_limit
from appliance.tunnel.model.allowlist import check_endpoint
from appliance.tunnel.model.connect import DRAIN_SECONDS
from appliance.tunnel.server import TunnelServer
from appliance.tunnel.stream.jams import reset_jammed

log = logging.getLogger("appliance.gateway")

_FAILURE = "a background task failed, the tunnel goes on: {}"
"""The log line for an unexpected error in a background task."""


async def run_source(settings: Settings, stopping: asyncio.Event) -> None:
    """The source VM: serve the tunnel to the source brokers until ``stopping`` is set, then drain it."""
    tunnel = settings.tunnel
    raise_fd_limit(tunnel.connections_max)
    async with CertificateReload(tunnel, Side.SOURCE) as identity:
        server = TunnelServer(tunnel, identity, broker_resolver(tunnel), status=lambda: status.for_the_other_end())
        status = SourceStatus(tunnel, lambda: Keys(identity.days_left(), False, identity.peer_days_left()), server)
        served = serving(tunnel.status, status)
        async with server, in_background(log, _FAILURE, memory=reset_jammed, status=served):
            fields = {
                "listen": f"{tunnel.listen.host}:{server.port}",
                "link": tunnel.link,
                "targets": [str(target) for target in (*tunnel.allowed.exact, *tunnel.allowed.patterns)],
                "resolver": str(tunnel.resolver or "the system's"),
            }
            log.info("ready", extra={"fields": fields})
            await stopping.wait()
            log.info("stopping", extra={"fields": {"drain_seconds": DRAIN_SECONDS}})
            await server.drain(DRAIN_SECONDS)


def broker_resolver(settings: TunnelSettings) -> Resolve:
    """The resolver of the brokers' addresses on the source VM."""
    return StubResolver(settings.resolver).addresses if settings.resolver else system_addresses


async def run_destination(settings: Settings, stopping: asyncio.Event) -> None:
    """The destination VM: serve the brokers' endpoints and names on its loopback until ``stopping`` is set."""
    tunnel = settings.tunnel
    raise_fd_limit(tunnel.connections_max)
    async with contextlib.AsyncExitStack() as stack:
        identity = await stack.enter_async_context(CertificateReload(tunnel, Side.DESTINATION))
        client = await stack.enter_async_context(TunnelClient(tunnel, identity))
        endpoints = Endpoints(tunnel.allowed, AddressBook(tunnel.endpoint_network), client)
        await endpoints.open_exact()
        dns = DnsServer(settings.dns, endpoints.lookup)
        await dns.start()
        stack.push_async_callback(dns.close)
        keys = partial(_keys, identity, tunnel)
        await _watch(settings, client, keys, endpoints, dns, stopping)
        log.info("stopping", extra={"fields": {"drain_seconds": DRAIN_SECONDS}})
        await dns.close()  # a name that is asked for now would open an endpoint
        await client.drain(DRAIN_SECONDS)


async def _watch(
    settings: Settings,
    client: TunnelClient,
    keys: Callable[[], Keys],
    endpoints: Endpoints,
    dns: DnsServer,
    stopping: asyncio.Event,
) -> None:
    """Follow the source's brokers and serve the status until ``stopping`` is set.

    Its own connections through the tunnel are closed by then, so that no drain waits for them.
    """
    tunnel = settings.tunnel
    async with _source_cluster(settings, endpoints) as source:
        watcher = BrokerWatcher(source, tunnel.allowed, endpoints)
        far_end = FarEnd(client.server_status, tunnel.link)
        status = DestinationStatus(settings, client, keys, endpoints, dns, watcher, far_end)
        served = serving(tunnel.status, status)
        work = {"brokers": watcher.run, "memory": reset_jammed, "status": served, "far_end": far_end.run}
        async with in_background(log, _FAILURE, **work):
            fields = {
                "server": str(tunnel.server),
                "ssh": str(tunnel.ssh.login) if tunnel.ssh else "",
                "link": tunnel.link,
                "dns": str(status.shim),
            }
            log.info("ready", extra={"fields": fields})
            await stopping.wait()


def _keys(identity: Identity, tunnel: TunnelSettings) -> Keys:
    return Keys(identity.days_left(), bool(tunnel.previous_secret), identity.peer_days_left())


def _source_cluster(settings: Settings, endpoints: Endpoints) -> KafkaCluster:
    accept, name = partial(check_endpoint, settings=settings.tunnel), f"{settings.replicator}-gateway"
    return KafkaCluster(settings.source, resolver(endpoints), name, "; through the tunnel", accept=accept)


def _uvloop() -> asyncio.AbstractEventLoop:
    """The event loop uvloop, which saves a tenth of the processor time for each message and each new connection."""
    import uvloop

    return uvloop.new_event_loop()


def _confined(role: Role, run: Callable[[Settings, asyncio.Event], Awaitable[None]]) -> Run:
    """An end that reads only the files that its settings name; a login by token may need any."""

    async def confine_and_run(settings: Settings, _: argparse.Namespace, stopping: asyncio.Event) -> None:
        by_token = False
        if role & Role.DESTINATION:
            carrier_of(settings.tunnel)
            by_token = settings.source.mechanism.by_token
        version = 0 if by_token else read_only(settings.tunnel, settings.source)
        log.info("files confined", extra={"fields": {"landlock": version}})
        await run(settings, stopping)

    return with_settings(role, confine_and_run)


SOURCE = Command(
    "Listens on TUNNEL_LISTEN:TUNNEL_PORT for the destination VM, and carries its connections to the source "
    "brokers that SOURCE_BROKER_SERVERS and SOURCE_BROKER_PATTERN allow, and to no other target.",
    _confined(Role.SOURCE, run_source),
    loop=_uvloop,
)

DESTINATION = Command(
    "Gives every source broker a loopback address, resolves its name on DNS_LISTEN, and carries connections to "
    "that address through the tunnel to SOURCE_SIDE_TUNNEL_IP:TUNNEL_PORT.",
    _confined(Role.DESTINATION, run_destination),
    loop=_uvloop,
)
