import pytest

from appliance.settings.patterns import pattern_faults
from appliance.settings.target import AllowedTargets, Target, TargetPattern


def faults(pattern: str, *brokers: str) -> list[str]:
    exact = tuple(Target.parse(broker) for broker in brokers or ("b0.orange.example:9092",))
    return pattern_faults(AllowedTargets(exact, (TargetPattern.parse(pattern),)))


SHARED = """
    co.uk com.au github.io amazonaws.com compute.amazonaws.com eu-west-1.compute.amazonaws.com
    eu-west-1.elb.amazonaws.com windows.net servicebus.windows.net a.aivencloud.com xn--55qx5d.cn
    kafka.us-east-1.amazonaws.com c2.kafka.ap-southeast-2.amazonaws.com
    kafka.us-gov-west-1.amazonaws.com c1.kafka.cn-north-1.amazonaws.com.cn vpce.amazonaws.com
    eu-west-1.vpce.amazonaws.com confluent.cloud aws.confluent.cloud glb.confluent.cloud
    azure.glb.confluent.cloud cluster.local svc.cluster.local
"""


@pytest.mark.parametrize("domain", SHARED.split())
def test_a_domain_with_public_names_below_it_is_refused(domain: str) -> None:
    (fault,) = faults(f"*.{domain}:9092")
    assert fault.startswith(f"SOURCE_BROKER_PATTERN=*.{domain}:9092: names below {domain} belong to many owners")


@pytest.mark.parametrize(
    ("pattern", "broker"),
    [
        ("*.orange.example:9092", "b0.orange.example:9092"),
        ("*.ec2.internal:9092", "ip-10-0-0-1.ec2.internal:9092"),
        ("*.kafka.corp:9092-9095", "bootstrap.kafka.corp:9092"),
        ("*.us-east-1.aws.confluent.cloud:9092", "pkc-1.us-east-1.aws.confluent.cloud:9092"),
        ("*.link.c2.kafka.us-east-1.amazonaws.com:9092-9098", "b-1.link.c2.kafka.us-east-1.amazonaws.com:9098"),
        ("*.link.c2.kafka.us-east-1.amazonaws.com:14001-14098", "boot.link.c2.kafka.us-east-1.amazonaws.com:14001"),
        ("*.project.a.aivencloud.com:12835", "kafka-1.project.a.aivencloud.com:12835"),
        ("*.apps.orange.example:443", "bootstrap.apps.orange.example:443"),
        ("*.nodes.orange.example:31000-31090", "n0.nodes.orange.example:31090"),
        ("*.link.us-east-1.aws.confluent.cloud:9092", "lkc-1.link.us-east-1.aws.confluent.cloud:9092"),
        ("*.us-east-1.aws.glb.confluent.cloud:9092", "lkc-1-g000.us-east-1.aws.glb.confluent.cloud:9092"),
        ("*.lkc-1.us-east-1.aws.glb.confluent.cloud:9092", "e-1.lkc-1.us-east-1.aws.glb.confluent.cloud:9092"),
        ("*.vpce-svc-1.us-east-1.vpce.amazonaws.com:9092", "vpce-1.vpce-svc-1.us-east-1.vpce.amazonaws.com:9092"),
        ("*.kafka.svc.cluster.local:9093", "bootstrap.kafka.svc.cluster.local:9093"),
    ],
)
def test_the_patterns_of_own_and_of_hosted_kafka_are_accepted(pattern: str, broker: str) -> None:
    assert faults(pattern, broker) == []


def test_a_pattern_has_a_port_of_a_broker_that_is_named() -> None:
    (fault,) = faults("*.orange.example:9093", "b0.orange.example:9092", "b1.orange.example:9094")
    assert fault == (
        "SOURCE_BROKER_PATTERN=*.orange.example:9093: expected ports with one of SOURCE_BROKER_SERVERS (9092, 9094): "
        "name a broker there, or correct the ports"
    )


@pytest.mark.parametrize(
    ("ports", "broker", "first", "service"),
    [
        ("9092-9200", 9092, 9100, "node exporters"),
        ("9040-9092", 9092, 9042, "Cassandra"),
        ("9090-9099", 9092, 9090, "Prometheus"),
        ("8200-9092", 9092, 8200, "Vault"),
        ("400-500", 443, 400, "system services"),
    ],
)
def test_a_range_over_the_port_of_another_service_is_refused(ports: str, broker: int, first: int, service: str) -> None:
    (fault,) = faults(f"*.orange.example:{ports}", f"b0.orange.example:{broker}")
    assert f"port {first} is known for {service}: leave it out" in fault


def test_a_port_of_a_named_broker_is_a_brokers_whatever_else_is_known_for_it() -> None:
    assert faults("*.orange.example:9099-9101", "b0.orange.example:9099", "b1.orange.example:9100") == []
