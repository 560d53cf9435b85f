"""The destination VM: the source brokers' names and ports, on its own loopback, until it is stopped."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial

from appliance.dns.binding import AddressBook
from appliance.dns.server import DnsServer
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.far_end import FarEnd
from appliance.gateway.model.health import Keys
from appliance.gateway.status import FAILURE, DestinationStatus, StatusPages, serving
from appliance.gateway.watcher import BrokerWatcher, resolver
from appliance.kafka.client.cluster import KafkaCluster
from appliance.runtime.background import in_background
from appliance.settings.values import Settings, Side, TunnelSettings
from appliance.tls.identity import Identity
from appliance.tunnel.certificate_reload import CertificateReload
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.limits.connection_limit import raise_fd_limit
from appliance.tunnel.model.allowlist import check_endpoint
from appliance.tunnel.model.connect import DRAIN_SECONDS
from appliance.tunnel.stream.jams import reset_jammed

log = logging.getLogger("appliance.gateway")


async def run_destination(settings: Settings, stopping: asyncio.Event) -> None:
    """Serve the endpoints and the DNS shim until ``stopping`` is set.

    Raises:
        SettingsError: an address or a port is not available, or a file of the identity cannot be used.
    """
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
        served = serving(tunnel.status, StatusPages(status.health, status.metrics, status.status))
        work = {"brokers": watcher.run, "memory": reset_jammed, "status": served, "far_end": far_end.run}
        async with in_background(log, FAILURE, **work):
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
