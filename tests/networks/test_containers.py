"""A container's own address, and the VM's loopback: a neighbour gets to neither past the printed rules.

The rules that Docker before 28 makes for the ports of docker-compose.yml stand in for Docker: they let such packets
through. A chain of the test counts the attempts to connect that leave the VM for the container.
"""

import sys
from collections.abc import Iterator

import pytest

from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.values import Side
from deploy.render.compose import DESTINATION_VM, SOURCE_VM
from deploy.render.firewall import ready
from deploy.render.vm import bridge, port_mappings
from tests.networks.test_firewall import (
    BEGIN,
    COUNTING,
    DIAL,
    LISTEN,
    PEER,
    TUNNEL,
    VM,
    Machines,
    one_network,
    running,
)
from tests.support.namespace import Namespace
from tests.support.settings import REQUIRED

GATEWAY, CONTAINER = "172.18.0.1", "172.18.0.2"
VARIABLES = REQUIRED | {"DESTINATION_SIDE_TUNNEL_IP": PEER["ip"]}
SETTINGS = parse(VARIABLES, Role(0))
ROLES = {Side.SOURCE: SOURCE_VM, Side.DESTINATION: DESTINATION_VM}
MAPPINGS = {side: port_mappings(VARIABLES, SETTINGS, role) for side, role in ROLES.items()}
PAGES = [(side, one) for side in Side for one in MAPPINGS[side] if one.variable != "TUNNEL_PORT"]
WAYS = [
    *((side, CONTAINER, one.container_port) for side in Side for one in MAPPINGS[side]),
    *((side, one.at.host, one.at.port) for side, one in PAGES),
]
"""The published ports by the container's own address, and the pages by their address on the VM's loopback."""

OLD_DOCKER = """
table ip docker {
    chain prerouting { type nat hook prerouting priority dstnat; fib daddr type local jump published; }
    chain published { iifname "BRIDGE" return; PUBLISHED; }
    chain forward {
        type filter hook forward priority filter; policy drop;
        oifname "BRIDGE" ct state related,established accept
        iifname "BRIDGE" oifname != "BRIDGE" accept
        iifname != "BRIDGE" oifname "BRIDGE" ip daddr CONTAINER tcp dport { PORTS } accept
    }
}
table inet sending {
    chain leaves {
        type filter hook postrouting priority 20;
        oifname "BRIDGE" tcp flags & (syn | ack) == syn jump sent
    }
    chain sent { counter; }
}
"""


@pytest.fixture
def both() -> Iterator[tuple[Machines, Namespace]]:
    with one_network("ip", "container") as (machines, [container]):
        yield machines, container


def start_docker(vm: Namespace, container: Namespace, side: Side) -> None:
    """The bridge of docker-compose.yml with its container, and Docker's rules."""
    name = bridge(SETTINGS.tunnel.link, ROLES[side])
    vm.say("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    vm.ip("link", "add", "name", name, "type", "bridge")
    vm.ip("link", "set", "dev", name, "up")
    vm.ip("address", "add", f"{GATEWAY}/16", "dev", name)
    vm.ip("link", "add", "name", "container", "type", "veth", "peer", "name", "eth0", "netns", container.name)
    vm.ip("link", "set", "dev", "container", "master", name, "up")
    container.ip("link", "set", "dev", "eth0", "up")
    container.ip("address", "add", f"{CONTAINER}/16", "dev", "eth0")
    container.ip("route", "add", "default", "via", GATEWAY)
    published = [
        f"{'' if one.at.host == '0.0.0.0' else f'ip daddr {one.at.host} '}"
        f"tcp dport {one.at.port} dnat to {CONTAINER}:{one.container_port}"
        for one in MAPPINGS[side]
    ]
    ports = ", ".join(str(one.container_port) for one in MAPPINGS[side])
    rules = OLD_DOCKER.replace("BRIDGE", name).replace("CONTAINER", CONTAINER)
    vm.say("nft", "-f", "-", given=rules.replace("PUBLISHED", "; ".join(published)).replace("PORTS", ports) + COUNTING)


def load(vm: Namespace, side: Side) -> None:
    """The printed rules, with the brokers where nobody is."""
    printed = ready("nftables", SETTINGS, side).replace(f"CIDR_OF_{side.upper()}_BROKERS", "192.0.2.0/24")
    vm.say("nft", "-f", "-", given=printed)


def route_to(stranger: Namespace, address: str) -> None:
    """A route by way of the VM: a neighbour makes it for any address, also for one of loopback."""
    if address.startswith("127."):
        stranger.ip("route", "delete", "local", "127.0.0.0/8", "dev", "lo", "table", "local")
        stranger.say("sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet")
    stranger.ip("route", "add", f"{address}/32", "via", VM["ip"])


@pytest.mark.parametrize(("side", "address", "port"), WAYS, ids=str)
def test_case_1010_a_neighbour_reaches_no_container_past_the_published_address(
    both: tuple[Machines, Namespace], side: Side, address: str, port: int
) -> None:
    """Before, the printed rules looked at what was sent to the VM's own addresses alone, and at the source VM alone."""
    machines, container = both
    start_docker(machines.vm, container, side)
    route_to(machines.stranger, address)
    with running(container, LISTEN, *(one.container_port for one in MAPPINGS[side])):
        # Docker's rules let it through, or the rest would show nothing.
        assert machines.stranger.say(sys.executable, "-c", DIAL, address, str(port)) == "connected\n"
        load(machines.vm, side)
        before = machines.counted("here"), sent(machines.vm)
        with running(machines.stranger, BEGIN, address, port):
            machines.wait_until_counted("here", before[0])
            assert sent(machines.vm) == before[1]


def test_the_peer_and_the_containers_own_connections_pass_the_printed_rules(both: tuple[Machines, Namespace]) -> None:
    machines, container = both
    start_docker(machines.vm, container, Side.SOURCE)
    load(machines.vm, Side.SOURCE)
    machines.peer.ip("route", "add", "172.18.0.0/16", "via", VM["ip"])
    with running(container, LISTEN, TUNNEL), running(machines.peer, LISTEN, TUNNEL):
        assert machines.peer.say(sys.executable, "-c", DIAL, VM["ip"], str(TUNNEL)) == "connected\n"
        assert machines.vm.say(sys.executable, "-c", DIAL, CONTAINER, str(TUNNEL)) == "connected\n"
        assert container.say(sys.executable, "-c", DIAL, PEER["ip"], str(TUNNEL)) == "connected\n"


def sent(vm: Namespace) -> int:
    """The number of attempts to connect that have left the VM for the container."""
    return Machines(vm, vm, vm, "ip").counted("sent", "sending")
