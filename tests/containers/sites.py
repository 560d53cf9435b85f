"""The two sides: each has a VPC with a Kafka cluster, a DNS server that is the only one to know it, and a VM::

    orange VPC ------ orange VM =========== grape VM ------ grape VPC
    10.1.0.10, .11    10.1.0.2              10.2.0.2        10.2.0.10
    DNS 10.1.0.53     203.0.113.7  203.0.113.9              DNS 10.2.0.53

A VM is a network namespace with a Docker engine in it. No route leads to the machine that runs the tests. In grape's
VPC there are two more clusters, in plain text, for a link without a tunnel.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import SecurityProtocol
from testbed.plan import ApiKey, ClusterPlan, Node
from tests.support.namespace import Namespace, namespaces


@dataclass(frozen=True, slots=True)
class Side:
    """The facts of one side before anything runs.

    ``vm`` is the VM's address for the other VM, and ``vm_in_vpc`` its address in its VPC.
    """

    plan: ClusterPlan
    dns: Target
    vm: str
    vm_in_vpc: str

    @property
    def name(self) -> str:
        """The plan of the cluster."""
        return self.plan.name

    @property
    def names(self) -> dict[str, str]:
        """The addresses of the brokers, by their names."""
        return {node.fqdn: node.address for node in self.plan.nodes if node.fqdn is not None}

    @property
    def bootstrap(self) -> Target:
        """The first broker by its name in the VPC; the others are found in its metadata."""
        node = self.plan.nodes[0]
        assert node.fqdn is not None
        return Target(node.fqdn, self.plan.vpc_port)

    @property
    def user(self) -> ApiKey:
        """The user for the login; a cluster in plain text has none."""
        return self.plan.api_keys[0]


def _plan(name: str, addresses: list[str], port: int) -> ClusterPlan:
    nodes = tuple(Node(i, address, f"b{i}.{name}.example") for i, address in enumerate(addresses))
    user = ApiKey(f"{name}_key", Secret(f"{name}-api-secret"))
    return ClusterPlan(name, nodes, SecurityProtocol.SASL_SSL, (user,), port)


ORANGE = Side(
    _plan("orange", ["10.1.0.10", "10.1.0.11"], 9193), Target("10.1.0.53", 53), "203.0.113.7", vm_in_vpc="10.1.0.2"
)
GRAPE = Side(_plan("grape", ["10.2.0.10"], 9092), Target("10.2.0.53", 53), "203.0.113.9", vm_in_vpc="10.2.0.2")
SIDES = {side.name: side for side in (ORANGE, GRAPE)}


def _neighbour(name: str, address: str) -> Side:
    """A cluster of one broker in grape's VPC, in plain text and with its own name alone."""
    plan = ClusterPlan(name, (Node(0, address, name),), SecurityProtocol.PLAINTEXT, vpc_port=9092)
    return replace(GRAPE, plan=plan)


PLAIN_SOURCE = _neighbour("source-kafka-cluster", "10.2.0.20")
PLAIN_DESTINATION = _neighbour("destination-kafka-cluster", "10.2.0.21")
NEIGHBOURS = {side.name: side for side in (PLAIN_SOURCE, PLAIN_DESTINATION)}


def names_in_vpc(side: Side) -> dict[str, str]:
    """The names that the DNS server of a VPC knows, with their addresses."""
    others = NEIGHBOURS.values() if side is GRAPE else ()
    return {name: address for each in (side, *others) for name, address in each.names.items()}


@dataclass(frozen=True, slots=True)
class Machines:
    """The namespaces of one side."""

    vpc: Namespace
    vm: Namespace


@contextlib.contextmanager
def machines() -> Iterator[dict[str, Machines]]:
    """The namespaces of both sides, by the side's name; connected, without processes."""
    with namespaces([f"{name}-{place}" for name in SIDES for place in ("vpc", "vm")]) as made:
        both = {name: Machines(*made[2 * number : 2 * number + 2]) for number, name in enumerate(SIDES)}
        for name, side in SIDES.items():
            here = both[name]
            names = names_in_vpc(side)
            _cable(here.vpc, "vpc", [*names.values(), side.dns.host], here.vm, "vpc", [side.vm_in_vpc])
            here.vpc.configure(names, side.dns.host)
            here.vm.configure({}, side.dns.host)
        _cable(both["orange"].vm, "link", [ORANGE.vm], both["grape"].vm, "link", [GRAPE.vm])
        yield both


def _cable(
    one: Namespace, name: str, addresses: list[str], other: Namespace, other_name: str, other_addresses: list[str]
) -> None:
    one.ip("link", "add", "name", name, "type", "veth", "peer", "name", other_name, "netns", other.name)
    for machine, interface, own in ((one, name, addresses), (other, other_name, other_addresses)):
        machine.ip("link", "set", "dev", interface, "up")
        for address in own:
            machine.ip("address", "add", f"{address}/24", "dev", interface)
