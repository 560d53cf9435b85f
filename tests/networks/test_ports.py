"""The reachable ports of the running appliance: only the printed one, and only from the printed address."""

import ipaddress

import pytest

from tests.networks.sockets import Ports, listening, scan
from tests.networks.stage import Stage
from tests.networks.topology import (
    DESTINATION_SIDE_TUNNEL_IP,
    DESTINATION_VM_IN_VPC,
    SOURCE_SIDE_TUNNEL_IP,
    TUNNEL_PORT,
)
from tests.support.namespace import Namespace

pytestmark = pytest.mark.usefixtures("replicator")

ALL = 65535


def test_the_source_vm_answers_the_destination_vm_on_the_printed_port_alone(stage: Stage) -> None:
    assert scan(stage.machines.destination_vm, SOURCE_SIDE_TUNNEL_IP) == Ports([TUNNEL_PORT], 0, ALL - 1)


def test_the_source_vm_answers_a_stranger_nothing(stage: Stage) -> None:
    assert scan(stage.machines.stranger, SOURCE_SIDE_TUNNEL_IP) == Ports([], 0, ALL)


def test_the_destination_vm_answers_nobody(stage: Stage) -> None:
    machines = stage.machines
    for machine, address in (
        (machines.stranger, DESTINATION_SIDE_TUNNEL_IP),
        (machines.destination_vpc, DESTINATION_VM_IN_VPC),
    ):
        assert scan(machine, address) == Ports([], ALL, 0)


def not_on_loopback(machine: Namespace) -> set[tuple[str, int]]:
    return {place for place in listening(machine) if not ipaddress.ip_address(place[0]).is_loopback}


def test_the_vms_listen_on_the_tunnel_port_and_on_loopback_alone(stage: Stage) -> None:
    assert not_on_loopback(stage.machines.source_vm) == {("0.0.0.0", TUNNEL_PORT)}
    assert ("127.0.0.1", 53) in listening(stage.machines.destination_vm)
    assert not_on_loopback(stage.machines.destination_vm) == set()
