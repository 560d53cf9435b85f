"""The tunnel inside an SSH server: its open ports, and an unchanged Kafka client."""

import contextlib
import getpass
from collections.abc import AsyncIterator

import pytest

from tests.networks.clients import Kcat, through_tunnel
from tests.networks.clusters import OVER_BASTION, OVER_SSH
from tests.networks.sockets import Ports, listening, scan
from tests.networks.test_ports import ALL, not_on_loopback
from tests.networks.topology import BASTION, SOURCE_SIDE_TUNNEL_IP, TUNNEL_PORT
from tests.networks.tunnel import Tunnel
from tests.networks.vpcs import READY_SECONDS, Vpcs
from tests.support.namespace import Namespace
from tests.support.openssh import configured
from tests.support.ssh import write_keys

pytestmark = pytest.mark.asyncio(loop_scope="session")

RECORDS = [f"key-{number}:value {number}" for number in range(200)]


@contextlib.asynccontextmanager
async def carried(tunnel: Tunnel, machine: Namespace, address: str, dialled: str) -> AsyncIterator[Vpcs]:
    """The tunnel inside the sshd of a machine, which forwards only to ``dialled``, with the printed firewall rules."""
    vpcs = tunnel.vpcs
    name = f"sshd-{address}"
    files = write_keys(vpcs.directory / name)
    command = configured(vpcs.directory / name, address, 22, f"PermitOpen {dialled}:{TUNNEL_PORT}")
    changed = {
        "TUNNEL_SSH": f"{getpass.getuser()}@{address}:22",
        "TUNNEL_SSH_KEY_FILE": str(files.key),
        "TUNNEL_SSH_HOST_KEYS_FILE": str(files.host_keys),
    }
    sshd = await vpcs.start_command(machine, name, *command)
    vpcs.open_firewall(**changed)
    try:
        await sshd.wait_for_line("Server listening", READY_SECONDS)
        async with tunnel.changed(**changed):
            yield vpcs
    finally:
        vpcs.open_firewall()
        await sshd.stop()


def a_client_notices_nothing(vpcs: Vpcs, topic: str) -> None:
    """The other clients go through the plain tunnel: ``test_clients.py``."""
    client = Kcat(through_tunnel(vpcs))
    client.produce(topic, RECORDS)
    assert sorted(client.consume(topic, len(RECORDS))) == sorted(RECORDS)


async def test_inside_the_source_vms_own_sshd_no_other_port_is_open(tunnel: Tunnel) -> None:
    machines = tunnel.vpcs.machines
    async with carried(tunnel, machines.source_vm, SOURCE_SIDE_TUNNEL_IP, "127.0.0.1") as vpcs:
        assert scan(machines.destination_vm, SOURCE_SIDE_TUNNEL_IP) == Ports([22], 0, ALL - 1)
        assert scan(machines.stranger, SOURCE_SIDE_TUNNEL_IP) == Ports([], 0, ALL)
        assert not_on_loopback(machines.source_vm) == {(SOURCE_SIDE_TUNNEL_IP, 22)}
        assert ("127.0.0.1", TUNNEL_PORT) in listening(machines.source_vm)
        a_client_notices_nothing(vpcs, OVER_SSH)


@pytest.mark.release
async def test_through_a_bastion_the_source_vm_lets_in_the_bastion_alone(tunnel: Tunnel) -> None:
    machines = tunnel.vpcs.machines
    async with carried(tunnel, machines.bastion, BASTION, SOURCE_SIDE_TUNNEL_IP) as vpcs:
        assert scan(machines.bastion, SOURCE_SIDE_TUNNEL_IP) == Ports([TUNNEL_PORT], 0, ALL - 1)
        assert scan(machines.destination_vm, SOURCE_SIDE_TUNNEL_IP) == Ports([], 0, ALL)
        a_client_notices_nothing(vpcs, OVER_BASTION)
