"""The destination VM: the source brokers' names and ports, on its own loopback, until it is told to stop."""

import asyncio
import contextlib
import logging

from appliance.dns.addresses import AddressBook
from appliance.dns.server import DnsServer
from appliance.gateway.endpoints import Endpoints
from appliance.settings.values import Settings, Side
from appliance.tunnel import descriptors
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.deadlines import DRAIN_SECONDS
from appliance.tunnel.identity import Identity

log = logging.getLogger("appliance.gateway")


async def run_destination(settings: Settings, stopping: asyncio.Event) -> None:
    """Serve the endpoints and the DNS shim until ``stopping`` is set.

    Raises:
        SettingsError: an address or a port cannot be had.
    """
    tunnel = settings.tunnel
    descriptors.provide(tunnel.connections_max)
    async with contextlib.AsyncExitStack() as stack:
        identity = Identity(tunnel.secret, tunnel.link, Side.DESTINATION)
        client = await stack.enter_async_context(TunnelClient(tunnel, identity))
        endpoints = Endpoints(tunnel.allowed, AddressBook(tunnel.endpoint_network), client)
        await endpoints.open_exact()
        dns = DnsServer(settings.dns, endpoints.lookup)
        await dns.start()
        stack.push_async_callback(dns.close)
        fields = {"server": str(tunnel.server), "link": tunnel.link, "dns": f"{settings.dns.listen.host}:{dns.port}"}
        log.info("ready", extra={"fields": fields})
        await stopping.wait()
        log.info("stopping", extra={"fields": {"drain_seconds": DRAIN_SECONDS}})
        await dns.close()  # a name that is asked for now would open an endpoint
        await client.drain(DRAIN_SECONDS)
