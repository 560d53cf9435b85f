"""The source and the destination cluster: one broker each, in plain text, with the same heap."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from appliance.dns.stub import system_addresses
from appliance.errors import ProcessFailed
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.topics import NewTopic, create_topics
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, SaslMechanism, SecurityProtocol, Side
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
    """Start both; stop them and remove all their files afterwards.

    Raises:
        ProcessFailed, ToolMissing: as ``Cluster.start``.
    """
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
    """Create a topic with the cluster's maximum number of replicas.

    Raises:
        BrokerRefused, BrokerBusy, Unreachable: the cluster does not make it.
    """
    async with kafka_cluster(cluster, Side.DESTINATION) as client:
        topic = NewTopic(name, partitions, cluster.plan.replicas, configs)
        for error in (await create_topics(client, [topic])).failures.values():
            raise error


async def delete_topics(cluster: Cluster) -> None:
    """Delete all topics except Kafka's own: the copies, and the state of the copying program.

    Raises:
        ProcessFailed: the cluster did not delete them.
    """
    client = AdminClient({**cluster.client_configuration()})
    try:
        known = await asyncio.to_thread(client.list_topics, timeout=_DEADLINE)
        names = [name for name in known.topics if not name.startswith("__")]
        deleted = client.delete_topics(names, operation_timeout=_DEADLINE) if names else {}
        await asyncio.gather(*map(asyncio.wrap_future, deleted.values()))
    except KafkaException as error:
        raise ProcessFailed(f"the topics of cluster {cluster.plan.name} could not be deleted: {error}") from error


def broker_options(heap_megabytes: int) -> list[str]:
    """The JVM options of each broker."""
    command = Installation("java", "", Path(), ()).command(_plan("source", _SOURCE, heap_megabytes), Path(), "")
    return [option for option in command if option.startswith(("-Xm", "-XX:+Use", "-XX:+Always", "-XX:Tiered"))]


def _plan(name: str, address: str, heap_megabytes: int) -> ClusterPlan:
    return ClusterPlan.plain(name, address=address, heap_megabytes=heap_megabytes)
