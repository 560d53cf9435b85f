"""Refused peers and targets: the reasons are sent and logged, and a refusal causes no dial."""

import asyncio
import contextlib
import logging
import ssl
from dataclasses import replace

import pytest

from appliance.errors import HelloUnanswered, IdentityRefused
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tls.certificates import Credentials, make_credentials
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.server import TunnelServer
from tests.support.carrying import refused
from tests.support.tls import (
    Trusting,
    ask_connect,
    careless,
    connect_request,
    identity,
    key_of,
    known,
    link_to,
    running_client,
    running_server,
)
from tests.support.tunnel import HOST, LINK, SECRET, Resolver, carries, echo, logged, tunnel_settings

OTHER_SECRET = "another-9fTz2kLq8wXe4vBn6mRc1yUa"
UNUSED = Target(HOST, 9093)


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    yield
    log = logged(caplog.get_records("call"))
    assert SECRET not in log
    assert OTHER_SECRET not in log


def lax_server(credentials):
    return TunnelServer(tunnel_settings(UNUSED), Trusting(known(credentials, Side.SOURCE)), Resolver({}))


@pytest.mark.parametrize(
    "stranger",
    [
        {"side": Side.DESTINATION, "secret": OTHER_SECRET},
        {"side": Side.DESTINATION, "ids": ("orange", "melon")},
        {"side": Side.DESTINATION, "ids": ("orange-grape", "")},
    ],
    ids=["another secret", "another link", "ids that join to the same name"],
)
async def test_a_stranger_is_refused_at_both_ends_and_both_name_the_remedy(stranger, caplog):
    resolver = Resolver({HOST: ["127.0.0.1"]})
    async with (
        running_server(UNUSED, resolver) as server,
        running_client(UNUSED, server.port, identity(**stranger)) as (_, endpoint),
    ):
        assert await refused(endpoint)
        await server.drain(10)
    told = [message for message in caplog.messages if "SHARED_SECRET" in message]
    assert sorted(message.partition(",")[0] for message in told) == [
        "tunnel port dialled by a stranger",
        "tunnel refused",
    ]
    assert all("SOURCE_CLUSTER_ID" in message for message in told)
    assert resolver.asked == []


async def test_a_client_whose_certificate_alone_is_refused_says_so_too(caplog):
    """A client of TLS 1.3 learns of the refusal only after its own handshake."""
    ours, others = (make_credentials(key_of(secret), LINK, Side.SOURCE) for secret in (SECRET, OTHER_SECRET))
    doubting = Credentials(others.authority, ours.key_and_certificate)
    async with lax_server(doubting) as server, running_client(UNUSED, server.port) as (_, endpoint):
        assert await refused(endpoint)
    (told,) = [record for record in caplog.records if record.message.startswith("tunnel refused")]
    assert "SHARED_SECRET" in told.message
    assert "alert" in told.fields["cause"]


async def test_tls_without_a_certificate_is_refused():
    resolver = Resolver({HOST: ["127.0.0.1"]})
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.check_hostname = False
    anonymous.verify_mode = ssl.CERT_NONE
    anonymous.options &= ~ssl.OP_ENABLE_MIDDLEBOX_COMPAT
    async with running_server(UNUSED, resolver) as server:
        with pytest.raises(IdentityRefused, match="certificate required"):
            await ask_connect(server.port, connect_request(UNUSED), replace(known(), context=anonymous))
    assert resolver.asked == []


async def test_tls_1_2_is_refused():
    old = careless()
    old.context.minimum_version, old.context.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
    async with running_server(UNUSED) as server:
        with pytest.raises(HelloUnanswered):
            await ask_connect(server.port, connect_request(UNUSED), old)


async def test_plain_text_is_refused(caplog):
    resolver = Resolver({HOST: ["127.0.0.1"]})
    async with running_server(UNUSED, resolver) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(connect_request(UNUSED))
        assert await reader.read(-1) == b""
        writer.close()
        await server.drain(10)
    assert resolver.asked == []
    assert any(message.startswith("tunnel port dialled by a stranger") for message in caplog.messages)


@pytest.mark.parametrize("first", [b"", b"\x16\x03\x01"], ids=["silence", "half a hello"])
async def test_a_handshake_that_is_never_finished_is_ended(first):
    async with running_server(UNUSED, timeouts=Timeouts(hello=0.1, handshake=0.1, last_word=0.1)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(first)
        with contextlib.suppress(ConnectionError):
            await reader.read(-1)
        await server.drain(10)
        writer.close()


async def test_a_peer_that_never_names_a_target_is_ended():
    async with running_server(UNUSED, timeouts=Timeouts(head=0.1)) as server:
        status, channel = await ask_connect(server.port, b"CONNECT b0.or")
        assert status.startswith(b"HTTP/1.1 400 no CONNECT request within")
        channel.close()


async def test_a_refused_peer_that_goes_on_talking_is_not_reset_before_it_can_hear_why():
    async with running_server(UNUSED) as server:
        status, channel = await ask_connect(server.port, b"GET / HTTP/1.1\r\n\r\n" + bytes(3_000_000))
        channel.close()
    assert status.startswith(b"HTTP/1.1 400 ")


async def test_a_refused_target_resets_the_client_and_names_the_variables(caplog):
    async with running_server(UNUSED) as server, running_client(Target(HOST, 22), server.port) as (_, endpoint):
        assert [await refused(endpoint) for _ in range(3)] == [True] * 3
    (told,) = [message for message in caplog.messages if message.startswith("target refused by the tunnel server")]
    assert "SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN" in told


AT_THE_CAP = pytest.mark.parametrize(
    "caps", [{"connections_max": 1}, {"at_client": {"connections_max": 1}}], ids=["source", "destination"]
)


@AT_THE_CAP
async def test_a_connection_too_many_waits_for_a_slot(caps, caplog):
    async with link_to(echo, **caps) as link:
        _, first = await link.carrying()
        second_reader, second = await link.connect()
        second.write(b"y")
        waiting = asyncio.create_task(second_reader.readexactly(1))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        first.close()
        assert await waiting == b"y"
        second.close()
    told = [message for message in caplog.messages if "TUNNEL_CONNECTIONS_MAX" in message]
    assert told == ["all connections are in use, new ones wait: raise TUNNEL_CONNECTIONS_MAX"]


@AT_THE_CAP
async def test_a_connection_that_finds_no_slot_in_time_is_refused_and_the_others_go_on(caps, caplog):
    async with link_to(echo, Timeouts(slot=0.1), **caps) as link:
        reader, writer = await link.carrying()
        resolved = len(link.resolver.asked)
        assert await asyncio.gather(*(refused(link.endpoint) for _ in range(20))) == [True] * 20
        assert len(link.resolver.asked) == resolved
        assert await carries(reader, writer, b"y")
        writer.close()
    assert len([message for message in caplog.messages if message.startswith("all connections are in use")]) == 1
