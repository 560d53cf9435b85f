"""An end of the tunnel whose process cannot open another socket."""

import contextlib
import socket

from appliance.settings.target import Target
from bench.lib.running import OWN_ADDRESS, free_port
from tests.support.carrying import until_echoed
from tests.support.dns import addresses, answer, resolve, scripted_server
from tests.support.gateway import gateway_process, gateway_variables
from tests.support.tls import running_client, running_server
from tests.support.tunnel import HOST, carries, carrying, echo, target_server

DESCRIPTORS = 40
"""A limit of file descriptors; Python and the appliance take about fifteen."""
OUT = (
    r"out of file descriptors: raise the limit \(ulimit -n; LimitNOFILE in systemd; ulimits in compose\) "
    "or lower TUNNEL_CONNECTIONS_MAX"
)


@contextlib.contextmanager
def idle_connections(address, port, count=60):
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection((address, port)))
        yield


def told(process, text):
    return [line for line in process.log_file.read_text().splitlines() if text in line]


async def everybody_is_here(query):
    return [answer(query, "127.0.0.1")]


async def test_a_source_without_descriptors_keeps_its_connections_names_the_limit_to_raise_and_recovers(tmp_path):
    async with target_server(echo) as broker, scripted_server(everybody_is_here) as resolver:
        variables = gateway_variables(broker, free_port(OWN_ADDRESS), TUNNEL_RESOLVER=str(resolver))
        port = int(variables["TUNNEL_PORT"])
        async with (
            gateway_process("source", variables, tmp_path, DESCRIPTORS) as source,
            running_client(Target(HOST, broker), port, server=Target(OWN_ADDRESS, port)) as (_, endpoint),
        ):
            reader, writer = await carrying(endpoint)
            with idle_connections(OWN_ADDRESS, port):
                await source.wait_for_line(OUT, 10)
                assert await carries(reader, writer)
            await until_echoed(endpoint)
            await source.wait_for_line("connections accepted again", 10)
            assert await carries(reader, writer)
            writer.close()
        assert len(told(source, "out of file descriptors")) == 1
        assert len(told(source, "too few file descriptors for all connections")) == 1


async def test_a_destination_without_descriptors_does_the_same(tmp_path):
    async with (
        target_server(echo) as broker,
        running_server(Target(HOST, broker), listen=Target(OWN_ADDRESS, 0)) as server,
    ):
        dns = free_port(OWN_ADDRESS)
        variables = gateway_variables(broker, server.port, DNS_LISTEN=f"{OWN_ADDRESS}:{dns}")
        async with gateway_process("destination", variables, tmp_path, DESCRIPTORS) as destination:
            (address,) = addresses(await resolve(dns, HOST, address=OWN_ADDRESS))
            reader, writer = await carrying(broker, address)
            with idle_connections(address, broker):
                await destination.wait_for_line(OUT, 10)
                assert await carries(reader, writer)
            await until_echoed(broker, address)
            assert await carries(reader, writer)
            writer.close()
        assert told(destination, "tunnel server unreachable") == []
