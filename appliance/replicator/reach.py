"""How the replicator reaches both clusters: the source through the shim and the tunnel, and no other way."""

from appliance.dns.stub import StubResolver, system_addresses
from appliance.kafka.cluster import KafkaCluster
from appliance.settings.values import Route, Settings


def source_cluster(settings: Settings) -> KafkaCluster:
    """The source: its brokers' names are asked of the shim, which knows the tunnel's endpoints."""
    by_tunnel = settings.route is Route.TUNNEL
    resolve = StubResolver(settings.dns.listen).addresses if by_tunnel else system_addresses
    return KafkaCluster(settings.source, resolve, settings.replicator)


def destination_cluster(settings: Settings) -> KafkaCluster:
    """The destination, which is at home here."""
    return KafkaCluster(settings.destination, system_addresses, settings.replicator)
