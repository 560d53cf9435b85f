"""A peer opens nearly all connections and reads none of them; both ends of the tunnel are their own processes."""

import asyncio
import contextlib
import ipaddress
import socket

import pytest

from appliance.dns.binding import AddressBook
from bench.lib.procfs import memory
from bench.lib.running import OWN_ADDRESS, free_port
from deploy.render.limits import tunnel_memory
from tests.support.gateway import gateway_process, gateway_variables
from tests.support.jamming import Jam, kernel_memory
from tests.support.patience import PATIENCE
from tests.support.processes import family
from tests.support.tunnel import echo, target_server

BESIDE = 10
MEBIBYTE = 2**20


def pid_of(process) -> int:
    """The end's Python process, which may be the child of a supervising process."""
    return max(family(process.pid), key=lambda one: one.memory_info().rss).pid


async def jam_all(at, target: Jam, stack: contextlib.ExitStack, count: int) -> None:
    """Open so many connections and read none; return when no more bytes are taken."""
    sender = stack.enter_context(Jam())
    for _ in range(count):
        connection = socket.socket()
        await asyncio.to_thread(connection.connect, at)
        sender.add(connection)
    while target.accepted < count or not (target.quiet and sender.quiet):
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("connections", [250, pytest.param(1000, marks=pytest.mark.release)])  # the bound grows alike
async def test_a_peer_that_jams_all_connections_takes_no_more_memory_than_there_is_and_the_others_go_on(
    tmp_path, connections
):
    async with contextlib.AsyncExitStack() as stack:
        jammed = stack.enter_context(Jam())
        port = await stack.enter_async_context(target_server(echo))
        variables = gateway_variables(
            port,
            free_port(OWN_ADDRESS),
            SOURCE_BROKER_SERVERS=f"localhost:{port},localhost:{jammed.port}",
            TUNNEL_CONNECTIONS_MAX=str(connections),
            DNS_LISTEN=f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}",
        )
        ends = [
            await stack.enter_async_context(gateway_process(command, variables, tmp_path))
            for command in ("source", "destination")
        ]
        address = str(AddressBook(ipaddress.IPv4Network("127.64.0.0/10")).address_of("localhost"))
        standing = await asyncio.open_connection(address, port)
        async with asyncio.timeout(PATIENCE):
            await jam_all((address, jammed.port), jammed, stack, connections - BESIDE)
            fresh = await asyncio.open_connection(address, port)
            for reader, writer in (standing, fresh):
                writer.write(b"x" * 100_000)
                assert await reader.readexactly(100_000) == b"x" * 100_000
                writer.close()
        async with asyncio.timeout(PATIENCE):  # jammed connections are reset a second or two after they have filled up
            for pid in map(pid_of, ends):
                while memory(pid).highest + kernel_memory(pid) >= tunnel_memory(connections) * MEBIBYTE:
                    await asyncio.sleep(0.1)
