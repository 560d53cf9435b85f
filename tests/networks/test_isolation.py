"""The tunnel is the only path between the two VPCs."""

import json

import pytest

from testbed.plan import Node
from tests.networks.clients import Kcat, through_tunnel
from tests.networks.clusters import BROKERS, ORANGE
from tests.networks.dig import dig
from tests.networks.topology import ROLES, SOURCE_SIDE_TUNNEL_IP, Topology
from tests.networks.tunnel import Tunnel
from tests.networks.vpcs import Vpcs


@pytest.mark.parametrize("role", ROLES)
def test_no_machine_has_a_way_to_the_world_or_forwards(machines: Topology, role: str) -> None:
    machine = getattr(machines, role.replace("-", "_"))
    assert machine.run("ip", "route", "get", "192.0.2.1").returncode
    assert machine.say("cat", "/proc/sys/net/ipv4/ip_forward") == "0\n"
    cables = [cable for cable in json.loads(machine.ip("-json", "link")) if cable["ifname"] != "lo"]
    bridges = ("switch",) if role == "link" else ("vpc",) if role.endswith("vpc") else ()
    assert all(cable["ifname"] in bridges or cable["link_netnsid"] >= 0 for cable in cables)


@pytest.mark.parametrize("node", ORANGE.nodes, ids=lambda node: node.fqdn)
def test_no_route_leads_to_a_broker_though_one_is_laid(vpcs: Vpcs, node: Node) -> None:
    vm = vpcs.machines.destination_vm
    assert vm.run("ip", "route", "get", node.address).returncode
    vm.ip("route", "add", node.address, "via", SOURCE_SIDE_TUNNEL_IP)
    assert vm.run(*connect(node.address, node.vpc_port)).returncode
    vm.ip("route", "delete", node.address)
    assert vpcs.machines.source_vm.run(*connect(node.address, node.vpc_port)).returncode == 0


@pytest.mark.asyncio(loop_scope="session")
async def test_without_the_tunnel_no_broker_is_reached_and_with_it_all_are(vpcs: Vpcs, tunnel: Tunnel) -> None:
    async with tunnel.stopped():
        with pytest.raises(RuntimeError, match="Failed to acquire metadata"):
            Kcat(through_tunnel(vpcs)).run("-L", "-m", "2")
    assert "2 brokers" in Kcat(through_tunnel(vpcs)).run("-L")


@pytest.mark.usefixtures("tunnel")
def test_the_destination_vm_learns_no_address_of_the_source_vpc(vpcs: Vpcs) -> None:
    for name in BROKERS["orange"]:
        (address,) = dig(vpcs.machines.destination_vm, name).addresses
        assert address.startswith("127.")


def connect(address: str, port: int) -> list[str]:
    """A command that succeeds if a TCP connection can be made within two seconds."""
    return ["timeout", "2", "bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}"]
