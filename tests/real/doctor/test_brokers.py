"""Brokers that answer, and from which nothing could be copied: who answers at an address, and what is acknowledged."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from appliance.doctor.diagnosis import Diagnosis
from appliance.doctor.step import Verdict
from appliance.settings.target import Target
from appliance.settings.values import SecurityProtocol
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from tests.support.administration import configure, make_topic, topics
from tests.support.doctor import assert_breaks_at, diagnosis, finding, with_verdict
from tests.support.engine import Pair
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

OLD = "2.8.2"
"""A version whose brokers acknowledge nothing with fewer replicas than min.insync.replicas; newer ones need no more
than there are."""

ONE_ADDRESS = (Node(0, "127.0.7.1", "127.0.7.1"), Node(1, "127.0.7.2", "127.0.7.1"))
RELAYED = (Node(0, "127.0.8.1", "127.0.8.1"), Node(1, "127.0.8.2", "127.0.8.9"))
"""Node 1 advertises an address at which another program relays connections."""


def plain(name: str, *nodes: Node) -> ClusterPlan:
    return ClusterPlan(name, nodes, SecurityProtocol.PLAINTEXT)


async def examined(directory: Path, source: Target | str, destination: Target | str, **changed: str) -> Diagnosis:
    """The diagnosis of a link without a tunnel."""
    variables = {
        "SOURCE_ROUTE": "direct",
        "SOURCE_CLUSTER_ID": "orange",
        "SOURCE_BROKER_SERVERS": str(source),
        "SOURCE_SECURITY_PROTOCOL": "PLAINTEXT",
        "DESTINATION_CLUSTER_ID": "grape",
        "DESTINATION_BROKER_SERVERS": str(destination),
        "DESTINATION_SECURITY_PROTOCOL": "PLAINTEXT",
        "REPLICA_TOPICS_SOURCE_REGEX": "orders",
        "REPLICA_TOPICS_DEST_SUFFIX": "copy",
        "REPLICATION_FACTOR": "1",
    }
    return await diagnosis(directory, variables | changed)


@contextlib.asynccontextmanager
async def relay(at: Target, to: Target) -> AsyncIterator[None]:
    """A program at an address that passes each connection on, as a load balancer does."""

    async def one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        near, far = await asyncio.open_connection(to.host, to.port)
        await asyncio.gather(one_way(reader, far), one_way(near, writer))

    server = await asyncio.start_server(serve, at.host, at.port)
    try:
        yield
    finally:
        server.close()


async def test_case_821_brokers_that_advertise_one_address_and_an_address_of_another_broker_are_told(
    tmp_path: Path,
) -> None:
    # Every step passed, since somebody answers; and of what is asked of the others, nothing was ever answered.
    async with (
        Cluster(plain("one", *ONE_ADDRESS), tmp_path) as one,
        Cluster(plain("relayed", *RELAYED), tmp_path) as relayed,
    ):
        for cluster in (one, relayed):
            make_topic(cluster, NewTopic("orders", 2, 1))
        shared, own, relaying = one.vpc_targets[0], *relayed.vpc_targets
        async with relay(relaying, own):
            report = await examined(tmp_path, shared, own)
        assert with_verdict(report, Verdict.FAILED) == ["source: broker ids", "destination: broker ids"]
        found = finding(report, "source: broker ids")
        assert found.detail == f"several brokers advertise one address: 0 at {shared}, 1 at {shared}"
        assert "advertised.listeners" in found.remedy
        found = finding(report, "destination: broker ids")
        assert found.detail == f"another broker answers at {relaying}, which is that of broker 1"
        async with relay(relaying, Target(RELAYED[1].address, relaying.port)):
            report = await examined(tmp_path, shared, own)
        assert with_verdict(report, Verdict.FAILED) == ["source: broker ids"]
        assert finding(report, "destination: broker ids").detail.startswith("2 of 2 ")


async def test_case_820_a_destination_that_acknowledges_no_write_is_told_and_the_remedy_works(
    pair: Pair, tmp_path: Path
) -> None:
    # A transaction without a record was begun and aborted, and the doctor found the path whole.
    source, positions = pair.topic("orders"), "replicator-orange.positions"
    demanding = replace(
        plain("demanding", Node(0, "127.0.9.1")), version=OLD, properties=(("min.insync.replicas", "2"),)
    )
    async with Cluster(demanding, tmp_path) as cluster:

        async def look() -> Diagnosis:
            servers = pair.orange.home_bootstrap, cluster.home_bootstrap
            return await examined(tmp_path, *servers, REPLICA_TOPICS_SOURCE_REGEX=source)

        report = await look()
        assert_breaks_at(report, "destination: transactions", f"{source}.copy", "set min.insync.replicas=1 for")
        found = finding(report, "destination: transactions")
        assert "min.insync.replicas=2, replicas: 1" in found.detail
        assert "REPLICATION_FACTOR=2" in found.remedy
        assert {name for name in topics(cluster) if not name.startswith("__")} == set()
        set_for_brokers(cluster, "min.insync.replicas", "1")
        assert (await look()).well
        make_topic(cluster, NewTopic(positions, 2, 1, config={"cleanup.policy": "compact", "min.insync.replicas": "2"}))
        report = await look()
        assert_breaks_at(
            report, "destination: transactions", f"{positions}: min.insync.replicas=2", "topics that have their own"
        )
        configure(cluster, positions, **{"min.insync.replicas": "1"})
        assert (await look()).well
        assert {name for name in topics(cluster) if not name.startswith("__")} == {positions}


def set_for_brokers(cluster: Cluster, name: str, value: str) -> None:
    """Change a setting of the cluster's only broker while it runs."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    broker = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[entry])
    admin = AdminClient(cluster.client_configuration())
    for change in admin.incremental_alter_configs([broker]).values():
        change.result(PATIENCE)
