"""Independent Kafka clients on the destination VM reach the brokers of the source VPC by their own names and ports."""

import pytest

from tests.networks.clients import CLIENTS, Kcat, in_source_vpc, through_tunnel
from tests.networks.clusters import IMPOSTOR, TOPICS, WAYS
from tests.networks.vpcs import Vpcs

pytestmark = pytest.mark.usefixtures("tunnel")

RECORDS = [f"key-{number}:value {number}" for number in range(200)]
SECONDS = "8"
"""Seconds during which kcat tries again after a refusal."""


EACH_SUBMISSION = {("kcat", "PLAIN"), ("console", "PLAIN"), ("confluent", "SCRAM-SHA-512")}
"""Each client and each mechanism; the tunnel knows neither."""


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [pytest.param(*way, marks=[] if way in EACH_SUBMISSION else [pytest.mark.release]) for way in WAYS],
)
def test_a_client_lists_produces_and_consumes_through_the_tunnel(vpcs: Vpcs, name: str, mechanism: str) -> None:
    client = CLIENTS[name](through_tunnel(vpcs, mechanism))
    topic = f"{name}-{mechanism}"
    assert client.topics() == set(TOPICS["orange"])
    client.produce(topic, RECORDS)
    assert sorted(client.consume(topic, len(RECORDS))) == sorted(RECORDS)
    assert sorted(Kcat(in_source_vpc(vpcs)).consume(topic, len(RECORDS))) == sorted(RECORDS)


def test_the_clients_learn_the_brokers_own_names_and_ports(vpcs: Vpcs) -> None:
    listed = Kcat(through_tunnel(vpcs)).run("-L")
    assert "broker 0 at b0.orange.example:9193" in listed
    assert "broker 1 at b1.orange.example:9194" in listed


def test_a_name_that_the_brokers_certificate_does_not_hold_is_refused_by_the_client(vpcs: Vpcs) -> None:
    access = through_tunnel(vpcs, server=IMPOSTOR)
    with pytest.raises(RuntimeError, match="certificate verify failed"):
        access.say("kcat", "-F", access.file(access.librdkafka()), "-L", "-m", SECONDS)


def test_a_wrong_password_is_refused_by_the_broker(vpcs: Vpcs) -> None:
    wrong = through_tunnel(vpcs).librdkafka() | {"sasl.password": "wrong"}
    access = through_tunnel(vpcs)
    with pytest.raises(RuntimeError, match="Authentication failed"):
        access.say("kcat", "-F", access.file(wrong), "-L", "-m", SECONDS)
