"""Whom and what the tunnel by SSH refuses, who is told why, and that a refusal costs no dial."""

import asyncio
import logging

import asyncssh
import pytest

from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.ssh.keys import LinkKeys
from appliance.tunnel.strangers import STRANGERS_OF_ONE_MAX
from tests.support.carrying import echoed, refused
from tests.support.ssh import USER, keys, link_to, logged_in, running_client, running_server
from tests.support.tunnel import HOST, SECRET, Resolver, echo, logged, target_server

OTHER_SECRET = "another-9fTz2kLq8wXe4vBn6mRc1yUa"
UNUSED = Target(HOST, 9093)
PROHIBITED = asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    yield
    log = logged(caplog.get_records("call"))
    assert SECRET not in log
    assert OTHER_SECRET not in log


def told_by(caplog, start):
    return [record for record in caplog.records if record.message.startswith(start)]


@pytest.mark.parametrize(
    "stranger",
    [{"secret": OTHER_SECRET}, {"link": "orange-melon"}],
    ids=["another secret", "another link"],
)
async def test_a_server_of_strangers_is_refused_by_its_host_key_and_both_name_the_remedy(stranger, caplog):
    resolver = Resolver({HOST: ["127.0.0.1"]})
    async with (
        running_server(UNUSED, resolver) as server,
        running_client(UNUSED, server.port, keys(Side.DESTINATION, **stranger)) as (_, endpoint),
    ):
        assert await refused(endpoint)
        await server.drain(10)
    (by_client,) = told_by(caplog, "tunnel refused")
    (by_server,) = told_by(caplog, "tunnel client refused")
    assert "SHARED_SECRET" in by_client.message
    assert "SHARED_SECRET" in by_server.message
    assert "Host key is not trusted" in by_client.fields["cause"]
    assert resolver.asked == []


@pytest.mark.parametrize(
    "own",
    [keys(Side.DESTINATION, OTHER_SECRET).own, keys(Side.DESTINATION, link="orange-melon").own, keys(Side.SOURCE).own],
    ids=["another secret", "another link", "same role"],
)
async def test_the_server_refuses_a_strangers_key_though_the_stranger_accepts_it(own, caplog):
    resolver = Resolver({HOST: ["127.0.0.1"]})
    stranger = LinkKeys(own, keys(Side.DESTINATION).peers)
    async with (
        running_server(UNUSED, resolver) as server,
        running_client(UNUSED, server.port, stranger) as (_, endpoint),
    ):
        assert await refused(endpoint)
        await server.drain(10)
    (told,) = told_by(caplog, "tunnel client refused: SHARED_SECRET")
    assert own.get_fingerprint() in told.fields["cause"]
    assert told_by(caplog, "tunnel refused")
    assert resolver.asked == []


async def test_the_right_key_with_another_user_name_is_refused(caplog):
    async with running_server(UNUSED) as server:
        with pytest.raises(asyncssh.PermissionDenied):
            async with logged_in(server.port, username="root"):
                pass
        await server.drain(10)
    (told,) = told_by(caplog, "tunnel client refused")
    assert "root with SHA256:" in told.fields["cause"]


@pytest.mark.parametrize(
    "login",
    [{"client_keys": None, "password": SECRET}, {"client_keys": None}],
    ids=["password", "nothing"],
)
async def test_a_key_is_the_only_way_in(login):
    async with running_server(UNUSED) as server:
        with pytest.raises(asyncssh.PermissionDenied):
            async with logged_in(server.port, **login):
                pass
        methods = await asyncssh.get_server_auth_methods("127.0.0.1", server.port, username=USER, config=None)
    assert methods == ["publickey"]


async def test_after_six_keys_the_connection_is_ended():
    strangers = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(6)]
    async with running_server(UNUSED) as server:
        with pytest.raises(asyncssh.PermissionDenied, match="too many keys"):
            async with logged_in(server.port, client_keys=[*strangers, keys(Side.DESTINATION).own]):
                pass


@pytest.mark.parametrize(
    "old",
    [
        {"kex_algs": ["diffie-hellman-group14-sha256"]},
        {"kex_algs": ["ecdh-sha2-nistp256"]},
        {"encryption_algs": ["aes256-ctr"]},
        {"compression_algs": ["zlib@openssh.com"]},
    ],
    ids=lambda old: next(iter(old.values()))[0],
)
async def test_older_algorithms_are_refused(old, caplog):
    async with running_server(UNUSED) as server:
        with pytest.raises((asyncssh.KeyExchangeFailed, asyncssh.ConnectionLost)):
            async with logged_in(server.port, **old):
                pass
        await server.drain(10)
    assert told_by(caplog, "tunnel port dialled by something else")


async def test_a_session_is_refused_whatever_it_is_for():
    async with running_server(UNUSED) as server, logged_in(server.port) as connection:
        for attempt in (
            lambda: connection.create_process(),
            lambda: connection.create_process("true"),
            lambda: connection.create_process(subsystem="sftp"),
            lambda: connection.create_process("true", env={"A": "b"}, request_pty="force"),
        ):
            with pytest.raises(asyncssh.ChannelOpenError, match="Session refused"):
                await attempt()
        with pytest.raises(asyncssh.ChannelOpenError, match="Session refused"):
            await connection.start_sftp_client()


async def test_agent_forwarding_has_no_session_to_be_asked_in(tmp_path):
    async with (
        running_server(UNUSED) as server,
        logged_in(server.port, agent_path=str(tmp_path / "agent"), agent_forwarding=True) as connection,
    ):
        with pytest.raises(asyncssh.ChannelOpenError, match="Session refused"):
            await connection.create_process("true")


async def test_listening_for_the_client_is_refused(tmp_path):
    async with running_server(UNUSED) as server, logged_in(server.port) as connection:
        for listen in (
            lambda: connection.forward_remote_port("127.0.0.1", 0, "127.0.0.1", 9),
            lambda: connection.forward_remote_path(str(tmp_path / "socket"), str(tmp_path / "other")),
        ):
            with pytest.raises(asyncssh.ChannelListenError):
                await listen()
    assert list(tmp_path.iterdir()) == []


async def test_unix_sockets_and_network_devices_are_refused(tmp_path):
    async with running_server(UNUSED) as server, logged_in(server.port) as connection:
        for attempt in (
            lambda: connection.open_unix_connection(str(tmp_path / "socket")),
            lambda: connection.open_tun(),
            lambda: connection.open_tap(),
        ):
            with pytest.raises(asyncssh.ChannelOpenError, match="refused"):
                await attempt()


@pytest.mark.parametrize(
    ("host", "port"),
    [
        (HOST, 22),
        ("b1.orange.example", 9093),
        ("127.0.0.1", 9093),
        ("::1", 9093),
        ("localhost", 9093),
        ("", 9093),
        (HOST, 0),
        (HOST, 2**32 - 1),
        ("a b", 9093),
    ],
)
async def test_a_target_off_the_list_is_refused_without_being_resolved(host, port):
    resolver = Resolver({})
    async with running_server(UNUSED, resolver) as server, logged_in(server.port) as connection:
        with pytest.raises(asyncssh.ChannelOpenError) as refusal:
            await connection.open_connection(host, port)
    assert refusal.value.code == PROHIBITED
    assert resolver.asked == []


async def test_a_name_that_resolves_to_loopback_is_refused_unless_permitted(caplog):
    async with running_server(UNUSED, broker_networks=()) as server, logged_in(server.port) as connection:
        with pytest.raises(asyncssh.ChannelOpenError, match=r"b0\.orange\.example resolves to 127\.0\.0\.1: loopback"):
            await connection.open_connection(HOST, 9093)
    assert told_by(caplog, "target refused: check SOURCE_BROKER_SERVERS")


async def test_a_target_that_cannot_be_reached_says_why():
    async with running_server(UNUSED, Resolver({})) as server, logged_in(server.port) as connection:
        with pytest.raises(asyncssh.ChannelOpenError, match=r"no address for b0\.orange\.example") as refusal:
            await connection.open_connection(HOST, 9093)
    assert refusal.value.code == asyncssh.OPEN_CONNECT_FAILED


async def test_a_target_off_the_servers_list_resets_the_client_and_names_the_variables(caplog):
    async with running_server(UNUSED) as server, running_client(Target(HOST, 22), server.port) as (_, endpoint):
        assert [await refused(endpoint) for _ in range(3)] == [True] * 3
    (told,) = told_by(caplog, "target refused by the tunnel server")
    assert "SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN" in told.message


async def test_the_client_asks_no_server_for_a_target_off_its_own_list(caplog):
    async with target_server(echo) as port, running_server(Target(HOST, port)) as server:
        listed = Target("b7.orange.example", port)
        async with running_client(listed, server.port) as (client, _):
            endpoint = await client.open_endpoint(Target(HOST, port), "127.0.0.1", 0)
            assert await refused(endpoint)
    assert told_by(caplog, "target refused")
    assert not told_by(caplog, "tunnel connection opened")


async def test_a_connection_too_many_is_refused_and_names_the_variable(caplog):
    async with link_to(echo, Deadlines(slot=0.1), connections_max=1) as link:
        reader, writer = await link.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        assert await refused(link.endpoint)
        writer.write(b"y")
        assert await reader.readexactly(1) == b"y"
        writer.close()
    assert any("TUNNEL_CONNECTIONS_MAX" in message for message in caplog.messages)


@pytest.mark.parametrize("first", [b"", b"SSH-2.0-x\r\n"], ids=["silence", "half a handshake"])
async def test_a_login_that_is_never_finished_is_ended(first, caplog):
    async with running_server(UNUSED, deadlines=Deadlines(handshake=0.1)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(first)
        await reader.read(-1)
        writer.close()
    assert told_by(caplog, "tunnel port dialled by somebody who hung up before logging in")


async def test_strangers_too_many_at_once_are_turned_away_and_a_client_comes_in_when_they_are_gone():
    async with link_to(echo) as link:
        strangers = [await asyncio.open_connection("127.0.0.1", link.server.port) for _ in range(STRANGERS_OF_ONE_MAX)]
        await asyncio.gather(*(reader.readline() for reader, _ in strangers))
        turned_away, writer = await asyncio.open_connection("127.0.0.1", link.server.port)
        assert await turned_away.read(-1) == b""
        writer.close()
        for reader, other in strangers:
            other.write_eof()
            await reader.read(-1)
            other.close()
        assert await echoed(link.endpoint) == b"x"


@pytest.mark.parametrize("text", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"SSH-1.5-old\r\n"])
async def test_what_is_no_ssh_is_refused(text, caplog):
    async with running_server(UNUSED) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(text + b"\n" * 20_000)
        await reader.read(-1)
        writer.close()
        await server.drain(10)
    assert told_by(caplog, "tunnel port dialled by something else")


async def test_what_answers_as_no_ssh_server_is_told(caplog):
    async def speak_http(_reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 2000)
        await writer.drain()

    async with target_server(speak_http) as port, running_client(UNUSED, port) as (_, endpoint):
        assert await refused(endpoint)
    assert told_by(caplog, "tunnel refused, what answers is no SSH server: check SOURCE_SIDE_TUNNEL_IP")
