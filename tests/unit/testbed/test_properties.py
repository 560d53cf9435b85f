"""server.properties, made from the plan."""

from dataclasses import replace
from pathlib import Path

import pytest

from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import SecurityProtocol
from testbed.plan import ApiKey, ClusterPlan, Node, Ports
from testbed.properties import server_properties

PORTS = Ports(home=19092, controller=19093, vpc=9093)
USERS = (ApiKey("ORANGE1", Secret("one")), ApiKey("ORANGE2", Secret("two")))
INTERNAL = ApiKey("broker_1", Secret("internal"))


def orange(size: int) -> ClusterPlan:
    return ClusterPlan.secure("orange", size=size, first_address="127.0.1.1", api_keys=USERS)


def properties(plan: ClusterPlan, node: Node) -> dict[str, str]:
    text = server_properties(plan, node, PORTS, Path(f"/cluster/b{node.id}"), INTERNAL)
    return dict(line.split("=", 1) for line in text.splitlines())


def test_the_vpc_listener_is_advertised_by_name_and_home_by_address():
    plan = orange(3)
    assert properties(plan, plan.nodes[2])["advertised.listeners"] == (
        "HOME://127.0.1.3:19092,VPC://b2.orange.vpc.example:9093"
    )


def test_every_node_listens_on_its_own_address_only():
    plan = orange(3)
    listeners = properties(plan, plan.nodes[1])["listeners"].split(",")
    assert sorted(listeners) == ["CONTROLLER://127.0.1.2:19093", "HOME://127.0.1.2:19092", "VPC://127.0.1.2:9093"]


def test_a_node_may_have_a_vpc_port_of_its_own():
    plan = ClusterPlan("orange", (Node(0, "10.1.0.10", "b0.orange", vpc_port=9193),), SecurityProtocol.SASL_SSL, USERS)
    entries = properties(plan, plan.nodes[0])
    assert "VPC://10.1.0.10:9193" in entries["listeners"]
    assert "VPC://b0.orange:9193" in entries["advertised.listeners"]
    assert plan.vpc_targets(PORTS) == (Target("b0.orange", 9193),)


def test_every_node_is_a_voter_of_the_quorum():
    plan = orange(3)
    assert {properties(plan, node)["controller.quorum.voters"] for node in plan.nodes} == {
        "0@127.0.1.1:19093,1@127.0.1.2:19093,2@127.0.1.3:19093"
    }


@pytest.mark.parametrize(("size", "replicas", "in_sync"), [(1, "1", "1"), (3, "3", "2")])
def test_internal_topics_are_stored_as_often_as_the_cluster_can(size, replicas, in_sync):
    plan = orange(size)
    entries = properties(plan, plan.nodes[0])
    assert entries["offsets.topic.replication.factor"] == replicas
    assert entries["transaction.state.log.replication.factor"] == replicas
    assert entries["transaction.state.log.min.isr"] == in_sync


@pytest.mark.parametrize("listener", ["home", "vpc"])
def test_every_api_key_may_log_in_on_both_listeners(listener):
    plan = orange(1)
    login = properties(plan, plan.nodes[0])[f"listener.name.{listener}.plain.sasl.jaas.config"]
    assert 'user_ORANGE1="one" user_ORANGE2="two";' in login


def test_a_plain_broker_has_one_client_listener_and_neither_tls_nor_sasl():
    plan = ClusterPlan.plain("bench", address="127.0.3.1")
    entries = properties(plan, plan.nodes[0])
    assert entries["listeners"] == "HOME://127.0.3.1:19092,CONTROLLER://127.0.3.1:19093"
    assert entries["listener.security.protocol.map"] == "HOME:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert not [name for name in entries if "ssl" in name or "sasl" in name]


def test_a_version_older_than_kraft_is_on_zookeeper_and_has_no_controllers():
    plan = replace(orange(1), version="2.8.2")
    entries = properties(plan, plan.nodes[0])
    assert (entries["broker.id"], entries["zookeeper.connect"]) == ("0", "127.0.1.1:19093")
    assert not [name for name in entries if "controller" in name or name == "process.roles"]
    assert not [value for value in entries.values() if "CONTROLLER" in value]


def test_a_plans_own_properties_come_last():
    plan = replace(orange(1), properties=(("auto.create.topics.enable", "true"), ("message.max.bytes", "1")))
    entries = properties(plan, plan.nodes[0])
    assert (entries["auto.create.topics.enable"], entries["message.max.bytes"]) == ("true", "1")
