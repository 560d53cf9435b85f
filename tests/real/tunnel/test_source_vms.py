"""Two source VMs: one that is closed, silent or draining costs a new connection, and no more; by TCP and by SSH.

The measured times are printed; the bounds are those of ``tests/unit/tunnel/test_servers.py``, by a clock of its own.
"""

import asyncio
import contextlib
import functools
import os
import signal
import time

import pytest

from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tls.certificates import make_credentials
from appliance.tls.first_flight import TokenKeys
from appliance.tls.identity import Identity
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.model.servers import Condition
from bench.lib.running import OWN_ADDRESS, free_port
from tests.support.carrying import echoed, until_echoed
from tests.support.dns import answer, scripted_server
from tests.support.gateway import gateway_process, gateway_variables
from tests.support.patience import PATIENCE
from tests.support.ssh import asyncssh_server, through
from tests.support.tls import identity, key_of, running_server
from tests.support.tunnel import HOST, LINK, SECRET, carries, carrying, echo, target_server, tunnel_settings

pytestmark = pytest.mark.usefixtures("no_secret_in_the_log")


@contextlib.asynccontextmanager
async def client_of(target, servers, ssh=(None, None), end=None, **changes):
    """A client of two source VMs that polls them, and the port of its endpoint."""
    (server, other), (way, other_way) = servers, ssh
    others = ((other, other_way),)
    settings = tunnel_settings(target, server=server, ssh=way, others=others, **changes)
    async with TunnelClient(settings, end or identity(Side.DESTINATION)) as client:
        endpoint = await client.open_endpoint(target, "127.0.0.1", 0)
        watching = asyncio.create_task(client.watch())
        try:
            yield client, endpoint
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


@pytest.fixture(params=["tcp", "ssh"])
def carriers(request, tmp_path):
    """A context manager that gives the SSH servers of two source VMs: none, or one each."""

    @contextlib.asynccontextmanager
    async def made():
        if request.param == "tcp":
            yield None, None
            return
        async with asyncssh_server(tmp_path / "one") as one, asyncssh_server(tmp_path / "other") as other:
            yield through(one), through(other)

    return made


async def until(holds):
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)


async def ended(reader):
    """Wait for the reset of a connection."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(-1) == b""


def local(server):
    return Target("127.0.0.1", server.port)


async def test_a_closed_source_vm_costs_no_connection_and_is_used_again_once_it_is_back(carriers, caplog):
    async with target_server(echo) as port, carriers() as ssh:
        target, closed = Target(HOST, port), free_port()
        async with (
            running_server(target) as second,
            client_of(target, (Target("127.0.0.1", closed), local(second)), ssh) as (client, endpoint),
        ):
            assert [await echoed(endpoint) for _ in range(5)] == [b"x"] * 5
            assert client.vms[0].condition is Condition.FAILED
            assert client.counters.server_fault == ""
            assert not client.counters.refused
            async with running_server(target, port=closed) as first:
                await until(lambda: client.vms[0].usable)
                before = first.counters.accepted
                assert await echoed(endpoint) == b"x"
                assert first.counters.accepted > before
                assert client.vms[0].condition is Condition.WELL
    told = [message for message in caplog.messages if message.startswith("tunnel server")]
    assert [line for line in told if "reached again" in line]
    assert len(told) <= 4


async def test_a_silent_source_vm_is_noticed_and_its_connections_go_on_through_the_other(tmp_path, capsys):
    async with target_server(echo) as broker, scripted_server(everybody_is_here) as resolver:
        target = Target(HOST, broker)
        variables = gateway_variables(broker, free_port(OWN_ADDRESS), TUNNEL_RESOLVER=str(resolver))
        first = Target(OWN_ADDRESS, int(variables["TUNNEL_PORT"]))
        async with (
            gateway_process("source", variables, tmp_path) as process,
            running_server(target) as second,
            client_of(target, (first, local(second))) as (client, endpoint),
        ):
            await until(lambda: all(vm.condition is Condition.WELL for vm in client.vms))
            reader, writer = await carrying(endpoint)
            assert [len(vm.carried) for vm in client.vms] == [1, 0]
            os.killpg(process.pid, signal.SIGSTOP)
            stopped = time.monotonic()
            assert await echoed(endpoint) == b"x"
            connected = time.monotonic() - stopped
            await ended(reader)
            noticed = time.monotonic() - stopped
            assert client.vms[0].condition is Condition.SILENT
            writer.close()
            os.killpg(process.pid, signal.SIGCONT)
            await until(lambda: client.vms[0].usable)
            reader, writer = await carrying(endpoint)
            assert len(client.vms[0].carried) == 1
            writer.close()
    with capsys.disabled():
        print(f"\na new connection beside a silent source VM took {connected:.3f} s; it was noticed in {noticed:.3f} s")


async def everybody_is_here(query):
    return [answer(query, "127.0.0.1")]


async def test_a_draining_source_vm_is_left_at_once_and_does_not_wait_for_its_deadline(carriers, capsys):
    async with target_server(echo) as port, carriers() as ssh:
        target = Target(HOST, port)
        async with (
            running_server(target) as first,
            running_server(target) as second,
            client_of(target, (local(first), local(second)), ssh) as (client, endpoint),
        ):
            await until(lambda: all(vm.condition is Condition.WELL for vm in client.vms))
            reader, writer = await carrying(endpoint)
            draining, began = asyncio.create_task(first.drain(10 * PATIENCE)), time.monotonic()
            await ended(reader)
            async with asyncio.timeout(PATIENCE):
                await draining
            drained = time.monotonic() - began
            assert await echoed(endpoint) == b"x"
            assert second.counters.accepted
            assert not client.counters.refused
            writer.close()
    with capsys.disabled():
        print(f"\na source VM was drained in {drained:.3f} s")


async def test_a_lone_source_vm_that_drains_keeps_its_connections(caplog):
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with (
            running_server(target) as first,
            client_of(target, (local(first), Target("127.0.0.1", free_port()))) as (client, endpoint),
        ):
            await until(lambda: client.vms[1].condition is Condition.FAILED)
            reader, writer = await carrying(endpoint)
            draining = asyncio.create_task(first.drain(10 * PATIENCE))
            await until(lambda: client.vms[0].condition is Condition.DRAINING)
            assert await echoed(endpoint) is None
            assert await carries(reader, writer)
            assert client.counters.server_fault
            writer.write_eof()
            assert await reader.read(-1) == b""
            await draining
            writer.close()
    assert any(message.startswith("tunnel server is being stopped") for message in caplog.messages)


async def test_connections_are_spread_over_the_source_vms_that_are_well_if_that_is_chosen():
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with (
            running_server(target) as first,
            running_server(target) as second,
            client_of(target, (local(first), local(second)), spread=True) as (client, endpoint),
        ):
            connections = [await carrying(endpoint) for _ in range(6)]
            assert [len(vm.carried) for vm in client.vms] == [3, 3]
            for _, writer in connections:
                writer.close()
            await until(lambda: not any(vm.carried for vm in client.vms))


async def test_a_target_that_one_source_vm_does_not_reach_is_reached_through_the_other():
    async def nobody(_host):
        return []

    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with (
            running_server(target, nobody) as first,
            running_server(target) as second,
            client_of(target, (local(first), local(second))) as (client, endpoint),
        ):
            assert await echoed(endpoint) == b"x"
            assert client.vms[0].condition is Condition.WELL
            assert not client.counters.refused


async def test_while_the_secret_is_changed_both_source_vms_are_well_with_different_ones():
    new = "changed-4kPz0vWq7NdYx2sLb9RtGm3e"

    @functools.cache
    def with_secrets(side, *secrets):
        choices = [(TokenKeys.of(key_of(each)), make_credentials(key_of(each), LINK, side)) for each in secrets]
        return Identity(LINK, side, *choices)

    async with target_server(echo) as port:
        target = Target(HOST, port)
        both = with_secrets(Side.DESTINATION, new, SECRET)
        async with (
            running_server(target, end=with_secrets(Side.SOURCE, new)) as first,
            running_server(target) as second,
            client_of(target, (local(first), local(second)), end=both) as (client, endpoint),
        ):
            await until(lambda: all(vm.condition is Condition.WELL for vm in client.vms))
            assert await echoed(endpoint) == b"x"
            await first.drain(0)
            await until_echoed(endpoint)
            assert client.vms[1].condition is Condition.WELL
