"""The clusters of a link or an order: those of other networks are reached only through the shim and the tunnel."""

from functools import partial

from appliance.dns.stub import StubResolver, system_addresses
from appliance.kafka.client.cluster import KafkaCluster
from appliance.settings.order_values import OrderSettings
from appliance.settings.values import Route, Settings
from appliance.tunnel.model.allowlist import check_endpoint


def source_cluster(settings: Settings) -> KafkaCluster:
    """The source: the shim, which knows the tunnel's endpoints, resolves its brokers' names; no other is dialled."""
    if settings.route is Route.DIRECT:
        return KafkaCluster(settings.source, system_addresses, settings.replicator)
    shim = StubResolver(settings.dns.listen)
    way = "; it is reached by the tunnel: see what `appliance destination` logs"
    accept = partial(check_endpoint, settings=settings.tunnel)
    return KafkaCluster(settings.source, shim.addresses, settings.replicator, way, accept=accept)


def destination_cluster(settings: Settings) -> KafkaCluster:
    """The destination, in this network."""
    return KafkaCluster(settings.destination, system_addresses, settings.replicator)


def order_cluster(settings: OrderSettings, cluster: str) -> KafkaCluster:
    """One cluster of an order, by its id: the own one in this network, another one as the source of a link."""
    return destination_cluster(settings) if cluster == settings.cluster else source_cluster(settings.link(cluster))
