"""The tunnel server's answer to each CONNECT, as an independent TLS client reads it."""

import asyncio
import contextlib
import socket

import pytest

from appliance.settings.target import Target
from appliance.tunnel.model.connect import Timeouts
from tests.support.tls import ask_connect, connect_request, running_server
from tests.support.tunnel import HOST, Resolver, echo, target_server

UNUSED = Target(HOST, 9093)


async def answer_to(request, resolver=None, **changes):
    """The status line from a server that may dial HOST, port 9093."""
    async with running_server(UNUSED, resolver, **changes) as server:
        status, channel = await ask_connect(server.port, request)
        channel.close()
        return status


@pytest.mark.parametrize("target", ["b0.orange.example:22", "b1.orange.example:9093", "10.0.0.1:9093"])
async def test_a_target_off_the_list_is_refused_without_being_resolved(target):
    resolver = Resolver({})
    assert (await answer_to(connect_request(target), resolver)).startswith(b"HTTP/1.1 403 ")
    assert resolver.asked == []


async def test_a_name_that_resolves_to_loopback_is_refused_unless_permitted():
    resolver = Resolver({HOST: ["127.0.0.1"]})
    status = await answer_to(connect_request(UNUSED), resolver, broker_networks=())
    assert status == b"HTTP/1.1 403 b0.orange.example resolves to 127.0.0.1: loopback"


async def test_an_unresolvable_name_is_a_bad_gateway():
    status = await answer_to(connect_request(UNUSED), Resolver({}))
    assert status == b"HTTP/1.1 404 no address for b0.orange.example"


async def test_a_refused_dial_is_a_bad_gateway():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        target = Target(HOST, closed.getsockname()[1])
        async with running_server(target) as server:
            status, channel = await ask_connect(server.port, connect_request(target))
            channel.close()
    assert status == f"HTTP/1.1 502 127.0.0.1 port {target.port}: connection refused".encode()


async def test_a_resolver_that_is_silent_is_a_gateway_timeout():
    async def silent(_host):
        await asyncio.Event().wait()

    status = await answer_to(connect_request(UNUSED), silent, timeouts=Timeouts(resolve=0.1))
    assert status.startswith(b"HTTP/1.1 504 b0.orange.example not resolved")


async def test_a_target_that_is_silent_is_a_gateway_timeout():
    # A full backlog makes Linux drop further connection requests, as a firewall would.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as stack:
        target = Target(HOST, full.getsockname()[1])
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        async with running_server(target, timeouts=Timeouts(dial=0.3)) as server:
            status, channel = await ask_connect(server.port, connect_request(target))
            channel.close()
    assert status.startswith(b"HTTP/1.1 504 no answer from 127.0.0.1")


async def test_the_second_address_of_a_name_is_dialled_when_the_first_refuses():
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with running_server(target, Resolver({HOST: ["127.0.0.9", "127.0.0.1"]})) as server:
            status, channel = await ask_connect(server.port, connect_request(target))
            channel.reset()
    assert status == b"HTTP/1.1 200 connected"
