"""The source and the destination cluster: one broker each, in plain text, with the same heap."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from appliance.dns.stub import system_addresses
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.topics import NewTopic, create_topics
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, SaslMechanism, SecurityProtocol, Side
from bench.lib.clients import kafka_errors_as
from testbed.cluster import Cluster
from testbed.installation import Installation
from testbed.plan import ClusterPlan

HEAP_MEGABYTES = 1024
_SOURCE, _DESTINATION = "127.0.21.1", "127.0.22.1"
_DEFAULTS: Mapping[str, str] = {}
_DEADLINE = 60.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Both clusters, running, and a directory for the files of the copying program."""

    source: Cluster
    destination: Cluster
    directory: Path


@contextlib.asynccontextmanager
async def plain_pair(heap_megabytes: int = HEAP_MEGABYTES) -> AsyncIterator[Pair]:
    """Start both; stop them and remove all their files afterwards."""
    source = _plan("source", _SOURCE, heap_megabytes)
    destination = _plan("destination", _DESTINATION, heap_megabytes)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        async with Cluster(source, directory) as first, Cluster(destination, directory) as second:
            yield Pair(first, second, directory)


def kafka_cluster(cluster: Cluster, side: Side) -> KafkaCluster:
    """Our own client of a running cluster of the pair."""
    return plain_client(cluster.home_bootstrap, side)


def plain_client(bootstrap: str, side: Side) -> KafkaCluster:
    """Our own client of a cluster in plain text, given as its bootstrap list."""
    targets = tuple(map(Target.parse, bootstrap.split(",")))
    plain = SecurityProtocol.PLAINTEXT, SaslMechanism.PLAIN
    settings = ClusterSettings(side, side.value, targets, "", Secret(""), *plain, ca_file=None)
    return KafkaCluster(settings, system_addresses, "bench")


async def make_topic(cluster: Cluster, name: str, partitions: int, configs: Mapping[str, str] = _DEFAULTS) -> None:
    """Create a topic with the cluster's maximum number of replicas."""
    async with kafka_cluster(cluster, Side.DESTINATION) as client:
        await make_topics(client, [NewTopic(name, partitions, cluster.plan.replicas, configs)])


async def make_topics(client: KafkaCluster, topics: Sequence[NewTopic]) -> None:
    """Create all these topics."""
    raise_first((await create_topics(client, topics)).failures.values())


def raise_first(failures: Iterable[Exception]) -> None:
    """Raise the first of the failures, if there is one."""
    for failure in failures:
        raise failure


async def delete_topics(cluster: Cluster) -> None:
    """Delete all topics except Kafka's own: the copies, and the state of the copying program."""
    client = AdminClient({**cluster.client_configuration()})
    with kafka_errors_as(f"the topics of cluster {cluster.plan.name} could not be deleted"):
        metadata = await asyncio.to_thread(client.list_topics, timeout=_DEADLINE)
        names = [name for name in metadata.topics if not name.startswith("__")]
        deletions = client.delete_topics(names, operation_timeout=_DEADLINE) if names else {}
        await asyncio.gather(*map(asyncio.wrap_future, deletions.values()))


def broker_options(heap_megabytes: int) -> list[str]:
    """The JVM options of each broker."""
    command = Installation("java", "", Path(), ()).command(_plan("source", _SOURCE, heap_megabytes), Path(), "")
    return [option for option in command if option.startswith(("-Xm", "-XX:+Use", "-XX:+Always", "-XX:Tiered"))]


def _plan(name: str, address: str, heap_megabytes: int) -> ClusterPlan:
    return ClusterPlan.plain(name, address=address, heap_megabytes=heap_megabytes)
