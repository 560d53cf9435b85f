"""The reachable ports of the running appliance: only the printed one, and only from the printed address."""

import ipaddress

import pytest

from tests.networks.sockets import Ports, listening, scan
from tests.networks.topology import (
    DESTINATION_SIDE_TUNNEL_IP,
    DESTINATION_VM_IN_VPC,
    SOURCE_SIDE_TUNNEL_IP,
    TUNNEL_PORT,
)
from tests.networks.vpcs import Vpcs
from tests.support.namespace import Namespace

pytestmark = pytest.mark.usefixtures("replicator")

ALL = 65535


def test_the_source_vm_answers_the_destination_vm_on_the_printed_port_alone(vpcs: Vpcs) -> None:
    assert scan(vpcs.machines.destination_vm, SOURCE_SIDE_TUNNEL_IP) == Ports([TUNNEL_PORT], 0, ALL - 1)


def test_the_source_vm_answers_a_stranger_nothing(vpcs: Vpcs) -> None:
    assert scan(vpcs.machines.stranger, SOURCE_SIDE_TUNNEL_IP) == Ports([], 0, ALL)


def test_the_destination_vm_answers_nobody(vpcs: Vpcs) -> None:
    machines = vpcs.machines
    for machine, address in (
        (machines.stranger, DESTINATION_SIDE_TUNNEL_IP),
        (machines.destination_vpc, DESTINATION_VM_IN_VPC),
    ):
        assert scan(machine, address) == Ports([], ALL, 0)


def not_on_loopback(machine: Namespace) -> set[tuple[str, int]]:
    return {place for place in listening(machine) if not ipaddress.ip_address(place[0]).is_loopback}


def test_the_vms_listen_on_the_tunnel_port_and_on_loopback_alone(vpcs: Vpcs) -> None:
    assert not_on_loopback(vpcs.machines.source_vm) == {("0.0.0.0", TUNNEL_PORT)}
    assert ("127.0.0.1", 53) in listening(vpcs.machines.destination_vm)
    assert not_on_loopback(vpcs.machines.destination_vm) == set()
