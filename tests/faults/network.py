"""Both networks of the suite: three brokers a side, the tunnel between them, and a proxy on every wire that may fail.

::

    orange brokers <- tunnel server <- proxy <- tunnel client <- replicator -> proxies -> grape brokers

The destination's brokers advertise the proxies' addresses, under which their certificates are valid too. Producers and
observers go to the brokers themselves.
"""

import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import NewTopic

from appliance.settings.target import Target
from appliance.settings.values import SecurityProtocol
from bench.lib.running import OWN_ADDRESS
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from tests.faults.kafka_proxy import KafkaProxy, Tripwire
from tests.faults.proxy import Proxy, Tls
from tests.faults.supervised import Supervised
from tests.support.administration import make_topic
from tests.support.link import GRAPE_KEY, ORANGE_KEY, Link, link
from tests.support.patience import PATIENCE

BROKERS = 3
_ORANGE = ClusterPlan.secure("orange", size=BROKERS, first_address="127.0.31.1", api_keys=(ORANGE_KEY,))
_GRAPE = ClusterPlan(
    "grape",
    tuple(Node(n, f"127.0.32.{n + 1}", f"127.0.33.{n + 1}") for n in range(BROKERS)),
    SecurityProtocol.SASL_SSL,
    (GRAPE_KEY,),
)


@dataclass(frozen=True, slots=True)
class Network:
    """The processes that all runs share, with their faults."""

    link: Link
    wire: Proxy
    before_brokers: Sequence[Proxy]
    tripwire: Tripwire
    tunnel_server: Supervised
    tunnel_client: Supervised

    @property
    def source(self) -> Cluster:
        """The cluster of the producers."""
        return self.link.orange

    @property
    def destination(self) -> Cluster:
        """The cluster of the copies."""
        return self.link.grape


@contextlib.asynccontextmanager
async def network(directory: Path) -> AsyncIterator[Network]:
    """The network, ready."""
    async with link(directory, _ORANGE, _GRAPE) as made, contextlib.AsyncExitStack() as undo:
        tripwire = Tripwire()
        wire = Proxy(Target(OWN_ADDRESS, 0), Target(OWN_ADDRESS, made.tunnel_port))
        before_brokers = _before_brokers(made.grape, tripwire)
        for proxy in [wire, *before_brokers]:
            undo.push_async_callback(proxy.close)
            await proxy.start()
        server = Supervised(lambda: made.start("source"))
        client = Supervised(lambda: made.start("destination", TUNNEL_PORT=str(wire.listen.port)))
        for end in (server, client):
            undo.push_async_callback(end.close)
            await end.start()
            await end.process.wait_for_line("ready", PATIENCE)
        yield Network(made, wire, before_brokers, tripwire, server, client)


def make_topics(cluster: Cluster, partitions: Mapping[str, int]) -> None:
    """Topics on every broker."""
    for topic, count in partitions.items():
        make_topic(cluster, NewTopic(topic, count, BROKERS))


def _before_brokers(grape: Cluster, tripwire: Tripwire) -> list[KafkaProxy]:
    proxies = []
    for node, listen in zip(grape.plan.nodes, grape.vpc_targets, strict=True):
        target = Target(node.address, listen.port)
        proxies.append(KafkaProxy(listen, target, _tls(grape, node), tripwire))
    return proxies


def _tls(grape: Cluster, node: Node) -> Tls:
    """The broker's own key and certificate, which name the proxy's address too."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(grape.directory / f"b{node.id}" / "broker.pem")
    return Tls(serving, ssl.create_default_context(cafile=grape.ca_file))
