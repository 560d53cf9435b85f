"""``appliance source`` and ``appliance destination``: the two ends of the tunnel, each until it is stopped."""

import argparse
import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from appliance.dns.server import DnsServer
from appliance.dns.stub import StubResolver, system_addresses
from appliance.gateway.model.health import Keys
from appliance.gateway.order_status import OrderStatus
from appliance.gateway.source_tunnel import SourceTunnel, gateways_cluster, lookup, source_tunnel
from appliance.gateway.status import DestinationStatus, SourceStatus, serving
from appliance.runtime.background import Work, in_background
from appliance.runtime.command import Command, Run, with_settings_by
from appliance.runtime.confinement import read_only
from appliance.settings.env_file import read_either
from appliance.settings.role import Role
from appliance.settings.values import Settings, Side, TunnelSettings
from appliance.tunnel.broker_dialer import Resolve
from appliance.tunnel.certificate_reload import CertificateReload
from appliance.tunnel.dialler import carrier_of
from appliance.tunnel.limits.connection_limit import raise_fd_limit
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
    raise_fd_limit(settings.tunnel.connections_max * len(settings.links))
    async with contextlib.AsyncExitStack() as stack:
        tunnels = [await stack.enter_async_context(source_tunnel(link)) for link in settings.links]
        dns = DnsServer(settings.dns, lookup(tunnels))
        await dns.start()
        stack.push_async_callback(dns.close)
        await _watch(settings, tunnels, dns, stopping)
        log.info("stopping", extra={"fields": {"drain_seconds": DRAIN_SECONDS}})
        await dns.close()  # a name that is asked for now would open an endpoint
        await asyncio.gather(*(tunnel.client.drain(DRAIN_SECONDS) for tunnel in tunnels))


async def _watch(settings: Settings, tunnels: Sequence[SourceTunnel], dns: DnsServer, stopping: asyncio.Event) -> None:
    """Follow the sources' brokers and serve the status until ``stopping`` is set.

    Its own connections through the tunnels are closed by then, so that no drain waits for them.
    """
    work: dict[str, Work] = {"memory": reset_jammed}
    ends: dict[str, DestinationStatus] = {}
    async with contextlib.AsyncExitStack() as stack:
        for tunnel in tunnels:
            cluster = await stack.enter_async_context(gateways_cluster(tunnel.link, tunnel.endpoints))
            ends[tunnel.link.source.cluster_id], own_work = tunnel.watched(cluster, dns)
            work |= own_work
        first = next(iter(ends.values()))
        work["status"] = serving(settings.tunnel.status, OrderStatus(ends) if settings.source.member else first)
        async with in_background(log, _FAILURE, **work):
            vms = [vm for link in settings.links for vm in link.tunnel.of_each_vm]
            fields = {
                "server": ", ".join(str(vm.server) for vm in vms),
                "ssh": ", ".join(str(vm.ssh.login) for vm in vms if vm.ssh),
                "link": settings.tunnel.link,
                "dns": str(first.shim),
            }
            log.info("ready", extra={"fields": fields})
            await stopping.wait()


def _uvloop() -> asyncio.AbstractEventLoop:
    """The event loop uvloop, which saves a tenth of the processor time for each message and each new connection."""
    import uvloop

    return uvloop.new_event_loop()


def _confined(role: Role, run: Callable[[Settings, asyncio.Event], Awaitable[None]]) -> Run:
    """An end that reads only the files that its settings name; a login by token may need any."""

    async def confine_and_run(settings: Settings, _: argparse.Namespace, stopping: asyncio.Event) -> None:
        by_token, sources = False, [link.source for link in settings.links]
        if role & Role.DESTINATION:
            carrier_of(settings.tunnel)
            by_token = any(source.mechanism.by_token for source in sources)
        version = 0 if by_token else read_only(settings.tunnel, *sources)
        log.info("files confined", extra={"fields": {"landlock": version}})
        await run(settings, stopping)

    return with_settings_by(read_either, role, confine_and_run)


SOURCE = Command(
    "Listens on TUNNEL_LISTEN:TUNNEL_PORT for the destination VM, and carries its connections to the source "
    "brokers that SOURCE_BROKER_SERVERS and SOURCE_BROKER_PATTERN allow, and to no other target. In an order, with "
    "GLOBAL_CLUSTERS, it listens for all other VMs, and carries to the brokers of GLOBAL_CLUSTER.",
    _confined(Role.SOURCE, run_source),
    loop=_uvloop,
)

DESTINATION = Command(
    "Gives every source broker a loopback address, resolves its name on DNS_LISTEN, and carries connections to "
    "that address through the tunnel to SOURCE_SIDE_TUNNEL_IP:TUNNEL_PORT. In an order, with GLOBAL_CLUSTERS, it does "
    "so for the brokers of every other cluster, through a tunnel to the VM beside it.",
    _confined(Role.DESTINATION, run_destination),
    loop=_uvloop,
)
