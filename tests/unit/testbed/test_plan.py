"""Plans of clusters."""

from dataclasses import replace

import pytest

from appliance.settings.secret import Secret
from appliance.settings.target import Target
from testbed.plan import ApiKey, ClusterPlan, Ports

PORTS = Ports(home=19092, controller=19093, vpc=9093)
USER = ApiKey("ORANGE1", Secret("orange-secret"))


def orange(size: int = 3) -> ClusterPlan:
    return ClusterPlan.secure("orange", size=size, first_address="127.0.1.1", api_keys=(USER,))


def test_each_node_of_a_secure_cluster_has_its_own_name_and_address():
    assert [(node.fqdn, node.address) for node in orange().nodes] == [
        ("b0.orange.vpc.example", "127.0.1.1"),
        ("b1.orange.vpc.example", "127.0.1.2"),
        ("b2.orange.vpc.example", "127.0.1.3"),
    ]


def test_the_vpc_calls_brokers_by_name_and_the_home_network_by_address():
    plan = orange(1)
    assert plan.vpc_targets(PORTS) == (Target("b0.orange.vpc.example", 9093),)
    assert plan.home_targets(PORTS) == (Target("127.0.1.1", 19092),)


def test_a_plain_cluster_has_no_name_to_be_called_by():
    assert ClusterPlan.plain("bench", address="127.0.3.1").vpc_targets(PORTS) == ()


@pytest.mark.parametrize(("size", "replicas"), [(1, 1), (3, 3), (5, 3)])
def test_topics_are_stored_as_often_as_the_cluster_can_up_to_three_times(size, replicas):
    assert orange(size).replicas == replicas


@pytest.mark.parametrize(("key", "secret"), [('a"b', "good"), ("", "good"), ("good", 'bad"; user_x="y'), ("good", "")])
def test_a_key_that_could_break_out_of_the_login_configuration_is_refused(key, secret):
    with pytest.raises(ValueError, match=r"an API (key|secret) has"):
        ApiKey(key, Secret(secret))


def test_a_plan_does_not_show_its_secrets():
    assert "orange-secret" not in repr(orange())


@pytest.mark.parametrize(
    ("version", "on_zookeeper"), [("2.8.2", True), ("3.2.3", True), ("3.3.0", False), ("3.10.1", False)]
)
def test_a_cluster_older_than_kraft_for_production_is_on_zookeeper(version, on_zookeeper):
    assert replace(orange(), version=version).on_zookeeper == on_zookeeper
