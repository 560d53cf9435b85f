"""The link's two clusters: the source is reached only through the shim and the tunnel."""

from appliance.dns.stub import StubResolver, system_addresses
from appliance.kafka.client.cluster import KafkaCluster
from appliance.settings.values import Route, Settings


def source_cluster(settings: Settings) -> KafkaCluster:
    """The source: the shim, which knows the tunnel's endpoints, resolves its brokers' names."""
    if settings.route is Route.DIRECT:
        return KafkaCluster(settings.source, system_addresses, settings.replicator)
    shim = StubResolver(settings.dns.listen)
    way = "; it is reached by the tunnel: see what `appliance destination` logs"
    return KafkaCluster(settings.source, shim.addresses, settings.replicator, way)


def destination_cluster(settings: Settings) -> KafkaCluster:
    """The destination, in this network."""
    return KafkaCluster(settings.destination, system_addresses, settings.replicator)
