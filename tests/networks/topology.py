"""Two VPCs, two VMs beside each, and one link between the VMs::

    source VPC ------- source VM ========= destination VM ------- destination VPC
    10.1.0.10, .11     10.1.0.2     ||     10.2.0.2               10.2.0.10, .53
          |            203.0.113.7  ||     203.0.113.9                  |
          |                         ||                                  |
          +-------- other source VM == other destination VM ------------+
                       10.1.0.3     ||     10.2.0.3
                       203.0.113.8  ||     203.0.113.10
                             stranger, bastion
                             203.0.113.66, .22

The other VMs have processes in the tests of several VMs alone.
The link is a switch in its own namespace. No route leads to the machine that runs the tests, and no machine forwards.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.networks.clusters import BROKERS, GRAPE, GRAPE_DNS, ORANGE
from tests.support.namespace import Namespace, namespaces

SOURCE_SIDE_TUNNEL_IP = "203.0.113.7"
OTHER_SOURCE_SIDE_TUNNEL_IP = "203.0.113.8"
DESTINATION_SIDE_TUNNEL_IP = "203.0.113.9"
OTHER_DESTINATION_SIDE_TUNNEL_IP = "203.0.113.10"
STRANGER = "203.0.113.66"
BASTION = "203.0.113.22"
TUNNEL_PORT = 15060
SHIM = "127.0.0.1"

SOURCE_VM_IN_VPC = "10.1.0.2"
DESTINATION_VM_IN_VPC = "10.2.0.2"

SOURCE_VPC = "10.1.0.0/24"

_CLOSED = """
table inet filter {
    chain input {
        type filter hook input priority filter; policy drop;
        iif lo accept
        ct state established,related accept
    }
    chain forward {
        type filter hook forward priority filter; policy drop;
    }
    chain output {
        type filter hook output priority filter; policy drop;
        oif lo accept
        ct state established,related accept
    }
}
"""
"""The source VM's firewall before the printed rules are added to it."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The machines."""

    source_vpc: Namespace
    source_vm: Namespace
    link: Namespace
    stranger: Namespace
    bastion: Namespace
    destination_vm: Namespace
    destination_vpc: Namespace
    other_source_vm: Namespace
    other_destination_vm: Namespace

    @property
    def source_vms(self) -> tuple[Namespace, Namespace]:
        """Both source VMs."""
        return self.source_vm, self.other_source_vm

    @property
    def destination_vms(self) -> tuple[Namespace, Namespace]:
        """Both destination VMs."""
        return self.destination_vm, self.other_destination_vm


ROLES = (
    *("source-vpc", "source-vm", "link", "stranger", "bastion", "destination-vm", "destination-vpc"),
    *("other-source-vm", "other-destination-vm"),
)


@contextlib.contextmanager
def topology() -> Iterator[Topology]:
    """The topology, connected, with the source VM's firewall closed, without processes."""
    with namespaces(ROLES) as made:
        machines = Topology(*made)
        _lay_cables(machines)
        _give_addresses(machines)
        _name(machines)
        for machine in machines.source_vms:
            close(machine)
        yield machines


def close(machine: Namespace) -> None:
    """Drop everything in and out of a machine, except for rules that are added afterwards."""
    machine.say("nft", "-f", "-", given=f"flush ruleset\n{_CLOSED}")


def _lay_cables(machines: Topology) -> None:
    machines.link.ip("link", "add", "name", "switch", "type", "bridge")
    machines.link.ip("link", "set", "dev", "switch", "up")
    dialling = (*machines.source_vms, *machines.destination_vms, machines.stranger, machines.bastion)
    for port, machine in enumerate(dialling):
        _cable(machine, "link", machines.link, f"port{port}")
        machines.link.ip("link", "set", "dev", f"port{port}", "master", "switch")
    for vpc, vms in (
        (machines.source_vpc, machines.source_vms),
        (machines.destination_vpc, machines.destination_vms),
    ):
        vpc.ip("link", "add", "name", "vpc", "type", "bridge")
        vpc.ip("link", "set", "dev", "vpc", "up")
        for port, vm in enumerate(vms):
            _cable(vm, "vpc", vpc, f"vm{port}")
            vpc.ip("link", "set", "dev", f"vm{port}", "master", "vpc")


def _cable(one: Namespace, name: str, other: Namespace, other_name: str) -> None:
    one.ip("link", "add", "name", name, "type", "veth", "peer", "name", other_name, "netns", other.name)
    one.ip("link", "set", "dev", name, "up")
    other.ip("link", "set", "dev", other_name, "up")


def _give_addresses(machines: Topology) -> None:
    for machine, interface, addresses in (
        (machines.source_vpc, "vpc", [node.address for node in ORANGE.nodes]),
        (machines.source_vm, "vpc", [SOURCE_VM_IN_VPC]),
        (machines.source_vm, "link", [SOURCE_SIDE_TUNNEL_IP]),
        (machines.other_source_vm, "vpc", ["10.1.0.3"]),
        (machines.other_source_vm, "link", [OTHER_SOURCE_SIDE_TUNNEL_IP]),
        (machines.stranger, "link", [STRANGER]),
        (machines.bastion, "link", [BASTION]),
        (machines.destination_vm, "link", [DESTINATION_SIDE_TUNNEL_IP]),
        (machines.destination_vm, "vpc", [DESTINATION_VM_IN_VPC]),
        (machines.other_destination_vm, "link", [OTHER_DESTINATION_SIDE_TUNNEL_IP]),
        (machines.other_destination_vm, "vpc", ["10.2.0.3"]),
        (machines.destination_vpc, "vpc", [*(node.address for node in GRAPE.nodes), GRAPE_DNS.host]),
    ):
        for address in addresses:
            machine.ip("address", "add", f"{address}/24", "dev", interface)


def _name(machines: Topology) -> None:
    """Configure name resolution: the source's names on its own machines only, and the shim on the destination VM."""
    nobody = "127.0.0.1"
    for machine in (machines.source_vpc, *machines.source_vms):
        machine.configure(BROKERS["orange"], nobody)
    machines.stranger.configure({}, nobody)
    machines.bastion.configure({}, nobody)
    for machine in machines.destination_vms:
        machine.configure({}, SHIM)
    machines.destination_vpc.configure(BROKERS["grape"], nobody)
