"""Real clusters, on which the demo and all other tests with brokers depend."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from appliance.errors import ProcessFailed, SettingsError
from appliance.kafka.client import topics
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, SaslMechanism, Side
from testbed.certificates import CertificateAuthority
from testbed.cluster import Cluster
from testbed.plan import ApiKey, ClusterPlan
from tests.support.administration import configuration, make_topic
from tests.support.patience import PATIENCE

SECRET = b"orange-secret"
USER = ApiKey("ORANGE1", Secret(SECRET.decode()))
OTHER = ApiKey("ORANGE2", Secret("another-secret"))

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.release]  # every suite runs on such clusters


def orange(size: int, vpc_port: int = 0) -> ClusterPlan:
    return ClusterPlan.secure("orange", size=size, first_address="127.0.1.1", api_keys=(USER, OTHER), vpc_port=vpc_port)


def produce(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        failures.extend([error] if error else [])

    producer = Producer({**cluster.client_configuration(), "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, on_delivery=delivered)
    assert producer.flush(PATIENCE) == 0
    assert failures == []


def consume(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    """The first ``count`` values of the topic."""
    with contextlib.closing(Consumer(cluster.client_configuration() | {"group.id": "unused"})) as consumer:
        partitions = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        messages = consumer.consume(count, PATIENCE)
    assert [message.error() for message in messages if message.error()] == []
    return [message.value() for message in messages]


def brokers_listed(configuration: dict[str, str]) -> set[Target]:
    admin = AdminClient({**configuration, "log_level": 0})
    return {Target(broker.host, broker.port) for broker in admin.list_topics(timeout=PATIENCE).brokers.values()}


def assert_refused(configuration: dict[str, str], code: int) -> None:
    """Require that a client is refused, and gets ``code`` at some time."""
    errors: list[KafkaError] = []
    admin = AdminClient({**configuration, "log_level": 0, "error_cb": errors.append})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)
    while code not in [error.code() for error in errors]:
        assert admin.poll(PATIENCE), errors


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def three(tmp_path_factory) -> AsyncIterator[Cluster]:
    """Three brokers for the tests that break nothing."""
    async with Cluster(orange(3), tmp_path_factory.mktemp("three")) as cluster:
        yield cluster


async def test_records_go_through_three_brokers_with_tls_and_sasl(three):
    make_topic(three, NewTopic("numbers", 6, three.plan.replicas))
    values = [b"%d" % number for number in range(1000)]
    produce(three, "numbers", values)
    assert sorted(consume(three, "numbers", 1000)) == sorted(values)


async def test_the_home_network_calls_brokers_by_address(three):
    assert brokers_listed(three.client_configuration()) == set(three.home_targets)


def vpc(cluster: Cluster, side: Side) -> KafkaCluster:
    """Our own client in the cluster's network."""
    settings = ClusterSettings(
        side=side,
        cluster_id="orange",
        bootstrap=cluster.vpc_targets,
        protocol=cluster.plan.security,
        mechanism=SaslMechanism.PLAIN,
        api_key=USER.key,
        api_secret=USER.secret,
        ca_file=cluster.ca_file,
    )
    addresses = {node.fqdn: node.address for node in cluster.plan.nodes}

    async def resolve(host: str) -> tuple[str, ...]:
        return (addresses[host],)

    return KafkaCluster(settings, resolve, "test")


async def test_the_vpc_calls_brokers_by_name_and_their_certificates_bear_it(three):
    async with vpc(three, Side.SOURCE) as kafka:
        metadata = await kafka.metadata([])
        assert dict(metadata.brokers) == dict(enumerate(three.vpc_targets))
        for node in metadata.brokers:
            assert (await kafka.broker(node)).target.host == f"b{node}.orange.vpc.example"


async def test_topics_that_the_replicator_makes_with_three_replicas_take_nothing_on_one_broker_alone(three):
    wanted = [topics.NewTopic(f"factor-{factor}", 1, factor, {"retention.ms": "7200000"}) for factor in (-1, 1, 2, 3)]
    async with vpc(three, Side.DESTINATION) as kafka:
        made = await ConfigFilter(kafka).make(wanted)
    assert (made.failures, made.left_out) == ({}, {})
    held = {topic.name: configuration(three, topic.name) for topic in wanted}
    assert {configs["retention.ms"] for configs in held.values()} == {"7200000"}
    in_sync = {name: configs.get("min.insync.replicas") for name, configs in held.items()}
    assert in_sync == {"factor--1": "2", "factor-1": None, "factor-2": None, "factor-3": "2"}


async def test_every_key_of_the_plan_logs_in(three):
    for user in three.plan.api_keys:
        assert brokers_listed(three.client_configuration(user)) == set(three.home_targets)


@pytest.mark.parametrize("wrong", [ApiKey(USER.key, OTHER.secret), ApiKey("NOBODY", USER.secret)])
async def test_a_wrong_key_or_secret_is_refused(three, wrong):
    assert_refused(three.client_configuration(wrong), KafkaError._AUTHENTICATION)


async def test_a_client_that_trusts_another_authority_does_not_get_in(three, tmp_path):
    stranger = tmp_path / "stranger.pem"
    stranger.write_bytes(CertificateAuthority.create("a stranger").certificate_pem)
    configuration = three.client_configuration() | {"ssl.ca.location": str(stranger)}
    assert_refused(configuration, KafkaError._SSL)


async def test_a_user_made_while_the_cluster_runs_logs_in_by_scram(three):
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsertion = UserScramCredentialUpsertion("SCRAM1", credential, b"scram-secret")
    admin = AdminClient(three.client_configuration())
    admin.alter_user_scram_credentials([upsertion])["SCRAM1"].result(PATIENCE)
    scram = three.client_configuration(ApiKey("SCRAM1", Secret("scram-secret"))) | {"sasl.mechanism": "SCRAM-SHA-512"}
    assert brokers_listed(scram) == set(three.home_targets)


async def test_secrets_and_keys_are_for_their_owner_only(three):
    files = [path for level in ("*", "b*/*") for path in three.directory.glob(level) if path.is_file()]
    private = [path for path in files if b"PRIVATE KEY" in path.read_bytes() or SECRET in path.read_bytes()]
    assert {path.name for path in private} == {"server.properties", "broker.pem"}
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}


async def test_nothing_is_left_when_a_cluster_has_stopped(tmp_path):
    cluster = Cluster(orange(3), tmp_path)
    await cluster.start()
    processes = [cluster.broker(node.id).process.pid for node in cluster.plan.nodes]
    ports = cluster.ports
    await cluster.stop()
    assert not [pid for pid in processes if psutil.pid_exists(pid)]
    assert list(tmp_path.iterdir()) == []
    for port in (ports.home, ports.controller, ports.vpc):
        socket.create_server(("127.0.1.1", port)).close()


async def test_nothing_is_left_when_a_start_is_cancelled(tmp_path, caplog):
    caplog.set_level(logging.INFO, "demo")
    starting = asyncio.create_task(Cluster(orange(1), tmp_path).start())
    async with asyncio.timeout(PATIENCE):
        while not (launches := [record.fields for record in caplog.records if record.message == "broker launched"]):
            await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    (launched,) = launches
    assert not psutil.pid_exists(launched["pid"])
    assert list(tmp_path.iterdir()) == []


async def test_a_vpc_port_that_is_taken_is_named_before_any_broker_starts(tmp_path):
    with socket.create_server(("127.0.1.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match=f"127.0.1.1:{port} is taken"):
            await Cluster(orange(1, vpc_port=port), tmp_path).start()
    assert list(tmp_path.iterdir()) == []


async def test_a_vpc_port_that_is_asked_for_is_the_one_that_is_used(tmp_path):
    with socket.create_server(("127.0.1.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    async with Cluster(orange(1, vpc_port=port), tmp_path) as cluster:
        assert cluster.vpc_targets == (Target("b0.orange.vpc.example", port),)


async def test_a_directory_in_use_is_named(tmp_path):
    (tmp_path / "orange").mkdir()
    with pytest.raises(SettingsError, match=f"{tmp_path / 'orange'} exists"):
        await Cluster(orange(1), tmp_path).start()


async def test_a_broker_that_cannot_start_is_reported_with_the_tail_of_its_log(tmp_path):
    async with Cluster(orange(1), tmp_path) as cluster:
        await cluster.kill(0)
        (cluster.broker(0).directory / "data" / "meta.properties").write_text("node.id=7\nversion=1\n")
        with pytest.raises(
            ProcessFailed, match=r"broker b0.orange.vpc.example ended with status 1\n(.*\n)*.*meta.properties"
        ):
            await cluster.restart(0)
