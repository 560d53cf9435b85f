"""The way to the brokers of one source cluster: a link has one of them, and an order one to each other cluster."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address

from appliance.dns.binding import AddressBook
from appliance.dns.server import DnsServer, Lookup
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.model.health import Keys
from appliance.gateway.status import DestinationStatus, FarEnd
from appliance.gateway.watcher import BrokerWatcher, resolver
from appliance.kafka.client.cluster import KafkaCluster
from appliance.runtime.background import Work
from appliance.settings.values import Settings, Side
from appliance.tls.identity import Identity
from appliance.tunnel.certificate_reload import CertificateReload
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.model.allowlist import check_endpoint


@dataclass(frozen=True, slots=True)
class SourceTunnel:
    """A tunnel's client, and the endpoints of the brokers behind it.

    Each has an identity of its own: while SHARED_SECRET is being changed, one server may have the new one, and another
    one not yet.
    """

    link: Settings
    identity: Identity
    client: TunnelClient
    endpoints: Endpoints

    def keys(self) -> Keys:
        """The state of this end's keys."""
        previous = bool(self.link.tunnel.previous_secret)
        return Keys(self.identity.days_left(), previous, self.identity.peer_days_left())

    def watched(self, cluster: KafkaCluster, dns: DnsServer) -> tuple[DestinationStatus, dict[str, Work]]:
        """Its status, and the work that it needs beside the carrying."""
        watcher = BrokerWatcher(cluster, self.link.tunnel.allowed, self.endpoints)
        far_end = FarEnd(self.client.server_status, self.link.tunnel.link)
        status = DestinationStatus(self.link, self.client, self.keys, self.endpoints, dns, watcher, far_end)
        place = cluster.settings.place
        work = {"brokers": watcher.run, "far_end": far_end.run, "source_vms": self.client.watch}
        return status, {f"{name}_{place}": run for name, run in work.items()}


def gateways_cluster(link: Settings, endpoints: Endpoints) -> KafkaCluster:
    """The source cluster, whose brokers this process asks for their list."""
    accept, name = partial(check_endpoint, settings=link.tunnel), f"{link.replicator}-gateway"
    return KafkaCluster(link.source, resolver(endpoints), name, "; through the tunnel", accept=accept)


@contextlib.asynccontextmanager
async def source_tunnel(link: Settings) -> AsyncIterator[SourceTunnel]:
    """The open way to the link's source, with the endpoints of the brokers that are named."""
    tunnel = link.tunnel
    async with CertificateReload(tunnel, Side.DESTINATION) as identity, TunnelClient(tunnel, identity) as client:
        endpoints = Endpoints(tunnel.allowed, AddressBook(tunnel.endpoint_network), client)
        await endpoints.open_exact()
        yield SourceTunnel(link, identity, client, endpoints)


def lookup(tunnels: Iterable[SourceTunnel]) -> Lookup:
    """The shim's lookup of a name in the allow-lists of all of them, of which no two have the same names."""

    async def look_up(host: str) -> IPv4Address | None:
        for tunnel in tunnels:
            if (address := await tunnel.endpoints.lookup(host)) is not None:
                return address
        return None

    return look_up
