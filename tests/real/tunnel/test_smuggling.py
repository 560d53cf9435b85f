"""No bytes inside the TLS are taken for a request that our client did not write, and no name for another one."""

import asyncio

import pytest

from appliance.settings.target import Target
from appliance.tunnel.model.connect import HEAD_SIZE_MAX, Timeouts
from tests.support.patience import PATIENCE
from tests.support.tls import ask_connect, connect_request, running_server
from tests.support.tunnel import HOST, Resolver, echo, target_server

TARGET = Target(HOST, 9093)
GOOD = connect_request(TARGET)
OTHER = connect_request(Target("b9.pattern.example", 9092))
LINE, HEADERS = GOOD.split(b"\r\n", 1)


def with_header(header):
    return GOOD.removesuffix(b"\r\n") + header + b"\r\n\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        GOOD + OTHER,
        GOOD + b"bytes for the target, too early",
        with_header(b"Content-Length: 5") + b"hello",
        with_header(b"Content-Length: 0"),
        with_header(b"Transfer-Encoding: chunked") + b"0\r\n\r\n",
        with_header(b"Content-Length: 5\r\nTransfer-Encoding: chunked") + b"0\r\n\r\n" + OTHER,
        with_header(b"Host: b9.pattern.example:9092"),
        with_header(b"X: one\r\n two"),
        with_header(b"X: one\0two"),
        GOOD.replace(b"\r\n", b"\n"),
        GOOD.replace(b"Host: b0", b"Host: b9"),
        GOOD.replace(b"CONNECT b0", b"CONNECT user@b0"),
        GOOD.replace(b"CONNECT b0", b"CONNECT http://b0"),
        GOOD.replace(b"CONNECT", b"GET"),
        GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"),
        with_header(b"X: " + b"x" * HEAD_SIZE_MAX),
        b"CONNECT " + b"x" * 100_000,
    ],
    ids=lambda request_bytes: request_bytes[:90].decode("ascii", "replace"),
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


@pytest.mark.parametrize("spelling", ["127.1", "2130706433", "0x7f000001"])
async def test_an_address_in_a_spelling_of_old_is_a_bad_request(spelling):
    resolver = Resolver({})
    async with running_server(TARGET, resolver) as server:
        status, channel = await ask_connect(server.port, connect_request(Target(spelling, 9093)))
        channel.close()
    assert status.startswith(b"HTTP/1.1 400 ")
    assert resolver.asked == []


@pytest.mark.parametrize("spelling", ["localhost", "b0.orange.example.evil.example"])
async def test_a_name_that_a_resolver_would_take_for_another_is_not_on_the_list(spelling):
    resolver = Resolver({})
    async with running_server(TARGET, resolver) as server:
        status, channel = await ask_connect(server.port, connect_request(Target(spelling, 9093)))
        channel.close()
    assert status.endswith(b"is not on the allow-list")
    assert resolver.asked == []


@pytest.mark.parametrize(
    ("addresses", "kind"),
    [
        (["127.0.0.1"], "loopback"),
        (["::1"], "loopback"),
        (["::ffff:127.0.0.1"], "loopback"),
        (["169.254.3.4"], "link-local"),
        (["fe80::1"], "link-local"),
        (["169.254.169.254"], "cloud metadata"),
        (["::ffff:169.254.169.254"], "cloud metadata"),
        (["fd00:ec2::254"], "cloud metadata"),
        (["168.63.129.16"], "cloud metadata"),
        (["0.0.0.0"], "unspecified"),
        (["10.1.2.3", "127.0.0.1"], "loopback"),
    ],
)
async def test_an_allowed_name_that_leads_to_where_no_broker_lives_is_refused_without_a_dial(addresses, kind):
    async with running_server(TARGET, Resolver({HOST: addresses}), broker_networks=()) as server:
        status, channel = await ask_connect(server.port, GOOD)
        channel.close()
    assert status.startswith(b"HTTP/1.1 403 b0.orange.example resolves to ")
    assert status.endswith(kind.encode())


async def test_a_head_that_comes_byte_by_byte_has_no_more_time_than_one_that_comes_at_once():
    async with running_server(TARGET, timeouts=Timeouts(head=0.3)) as server:
        asking = asyncio.create_task(ask_connect(server.port, GOOD[:1]))
        async with asyncio.timeout(PATIENCE):
            status, channel = await asking
        channel.close()
    assert status.startswith(b"HTTP/1.1 400 no CONNECT request within 0.3 s")
