"""Two VPCs, a VM beside each, and one link between the VMs::

    source VPC ------- source VM ========= destination VM ------- destination VPC
    10.1.0.10, .11     10.1.0.2     ||     10.2.0.2               10.2.0.10, .53
                       203.0.113.7  ||     203.0.113.9
                             stranger, bastion
                             203.0.113.66, .22

The link is a switch in its own namespace. No route leads to the machine that runs the tests, and no machine forwards.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.networks.clusters import BROKERS, GRAPE, GRAPE_DNS, ORANGE
from tests.support.namespace import Namespace, namespaces

SOURCE_SIDE_TUNNEL_IP = "203.0.113.7"
DESTINATION_SIDE_TUNNEL_IP = "203.0.113.9"
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


ROLES = ("source-vpc", "source-vm", "link", "stranger", "bastion", "destination-vm", "destination-vpc")


@contextlib.contextmanager
def topology() -> Iterator[Topology]:
    """The topology, connected, with the source VM's firewall closed, without processes."""
    with namespaces(ROLES) as made:
        machines = Topology(*made)
        _lay_cables(machines)
        _give_addresses(machines)
        _name(machines)
        close(machines.source_vm)
        yield machines


def close(machine: Namespace) -> None:
    """Drop everything in and out of a machine, except for rules that are added afterwards."""
    machine.say("nft", "-f", "-", given=f"flush ruleset\n{_CLOSED}")


def _lay_cables(machines: Topology) -> None:
    machines.link.ip("link", "add", "name", "switch", "type", "bridge")
    machines.link.ip("link", "set", "dev", "switch", "up")
    for port, machine in enumerate((machines.source_vm, machines.destination_vm, machines.stranger, machines.bastion)):
        _cable(machine, "link", machines.link, f"port{port}")
        machines.link.ip("link", "set", "dev", f"port{port}", "master", "switch")
    _cable(machines.source_vm, "vpc", machines.source_vpc, "vpc")
    _cable(machines.destination_vm, "vpc", machines.destination_vpc, "vpc")


def _cable(one: Namespace, name: str, other: Namespace, other_name: str) -> None:
    one.ip("link", "add", "name", name, "type", "veth", "peer", "name", other_name, "netns", other.name)
    one.ip("link", "set", "dev", name, "up")
    other.ip("link", "set", "dev", other_name, "up")


def _give_addresses(machines: Topology) -> None:
    for machine, interface, addresses in (
        (machines.source_vpc, "vpc", [node.address for node in ORANGE.nodes]),
        (machines.source_vm, "vpc", [SOURCE_VM_IN_VPC]),
        (machines.source_vm, "link", [SOURCE_SIDE_TUNNEL_IP]),
        (machines.stranger, "link", [STRANGER]),
        (machines.bastion, "link", [BASTION]),
        (machines.destination_vm, "link", [DESTINATION_SIDE_TUNNEL_IP]),
        (machines.destination_vm, "vpc", [DESTINATION_VM_IN_VPC]),
        (machines.destination_vpc, "vpc", [*(node.address for node in GRAPE.nodes), GRAPE_DNS.host]),
    ):
        for address in addresses:
            machine.ip("address", "add", f"{address}/24", "dev", interface)


def _name(machines: Topology) -> None:
    """Configure name resolution: the source's names on its own machines only, and the shim on the destination VM."""
    nobody = "127.0.0.1"
    for machine in (machines.source_vpc, machines.source_vm):
        machine.configure(BROKERS["orange"], nobody)
    machines.stranger.configure({}, nobody)
    machines.bastion.configure({}, nobody)
    machines.destination_vm.configure({}, SHIM)
    machines.destination_vpc.configure(BROKERS["grape"], nobody)
