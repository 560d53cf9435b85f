"""No bytes inside the TLS are taken for a request that our client did not write, and no name for another one."""

import asyncio

import pytest

from appliance.settings.target import Target
from tests.support.tls import ask_connect, connect_request, running_server
from tests.support.tunnel import HOST, Resolver, echo, target_server

TARGET = Target(HOST, 9093)
GOOD = connect_request(TARGET)
OTHER = connect_request(Target("b9.pattern.example", 9092))


@pytest.mark.parametrize(
    "request_bytes",
    [GOOD + OTHER, GOOD.replace(b"Host: b0", b"Host: b9"), GOOD.replace(b"CONNECT", b"GET")],
    ids=["two requests", "two hosts", "another method"],
)
async def test_whatever_is_not_our_clients_request_is_a_bad_one_and_no_name_is_resolved(request_bytes):
    resolver = Resolver({HOST: ["127.0.0.1"]})
    async with running_server(TARGET, resolver) as server:
        status, channel = await ask_connect(server.port, request_bytes)
        channel.close()
    assert status.startswith(b"HTTP/1.1 400 ")
    assert resolver.asked == []


async def test_bytes_behind_the_head_are_the_targets_and_never_a_second_request():
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def resolve(_host):
        asked.set()
        await may_answer.wait()
        return ["127.0.0.1"]

    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with running_server(target, resolve) as server:
            answering = asyncio.create_task(ask_connect(server.port, connect_request(target)))
            await asked.wait()
            may_answer.set()
            status, channel = await answering
            assert status == b"HTTP/1.1 200 connected"
            for data in (OTHER, b"GET / HTTP/1.1\r\n\r\n"):
                channel.send(data)
                echoed = b""
                while len(echoed) < len(data):
                    echoed += await channel.receive()
                assert echoed == data
            channel.reset()
