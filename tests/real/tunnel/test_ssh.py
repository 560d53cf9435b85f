"""The tunnel inside SSH: its one connection, the trusted keys, the data that the SSH server sees, and failures."""

import asyncio
import contextlib
import random

import pytest

from appliance.settings.target import Target
from appliance.settings.values import KeyFiles, Side
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.ssh import options
from tests.support.carrying import echoed, exchange, refused, until_echoed
from tests.support.patience import PATIENCE
from tests.support.ssh import new_key, through, write_private, write_public
from tests.support.tls import identity, running_client, running_server
from tests.support.tunnel import HOST, Link, Resolver, echo, logged, target_server

MEGABYTE = 2**20
OTHER_SECRET = "another-9fTz2kLq8wXe4vBn6mRc1yUa"
UNUSED = Target(HOST, 9093)
pytestmark = pytest.mark.usefixtures("no_secret_in_the_log")


@contextlib.asynccontextmanager
async def inside(server, handler, at=None, **changes):
    """A tunnel to ``handler`` that an SSH server carries; it dials the tunnel server ``at`` its own port."""
    async with target_server(handler) as port, running_server(Target(HOST, port)) as tunnel:
        target = Target(HOST, port)
        async with running_client(target, at or tunnel.port, ssh=through(server), **changes) as (client, endpoint):
            yield Link(tunnel, client, Resolver({}), target, endpoint)


def told_by(caplog, start):
    return [record for record in caplog.records if record.message.startswith(start)]


async def until_told(caplog, start, endpoint):
    """Dial an endpoint until the log has a matching line."""
    async with asyncio.timeout(PATIENCE):
        while not told_by(caplog, start):
            assert await echoed(endpoint) is None
            await asyncio.sleep(0.02)


class Valve:
    """A proxy before a port that notes the bytes, and can hold them."""

    def __init__(self):
        self.open = asyncio.Event()
        self.open.set()
        self.seen = bytearray()

    @contextlib.asynccontextmanager
    async def before(self, port):
        """The proxy's port."""

        async def forward(source, sink):
            while data := await source.read(2**16):
                await self.open.wait()
                self.seen += data
                sink.write(data)
            sink.write_eof()

        async def pass_on(reader, writer):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                await asyncio.gather(forward(reader, far_writer), forward(far_reader, writer))
            finally:
                far_writer.transport.abort()

        async with target_server(pass_on) as own:
            yield own


async def test_many_connections_at_once_share_one_ssh_connection(tmp_path, ssh_server):
    async with ssh_server(tmp_path / "ssh") as server, inside(server, echo) as link:
        assert await asyncio.gather(*(echoed(link.endpoint) for _ in range(50))) == [b"x"] * 50
        assert server.logins == 1


async def test_new_session_keys_on_the_way_change_nothing(tmp_path, ssh_server, monkeypatch):
    monkeypatch.setitem(options._ALGORITHMS, "rekey_bytes", 100_000)
    data = random.Random(7).randbytes(10 * MEGABYTE)
    async with ssh_server(tmp_path / "ssh") as server, inside(server, echo) as link:
        assert await asyncio.gather(*(exchange(link, data) for _ in range(2))) == [data, data]


async def test_a_slow_reader_gets_all_that_was_sent_before_the_close(tmp_path, ssh_server):
    data = random.Random(3).randbytes(20 * MEGABYTE)

    async def answer_all_at_once(reader, writer):
        await reader.read(-1)
        writer.write(data)
        await writer.drain()

    async with ssh_server(tmp_path / "ssh") as server, inside(server, answer_all_at_once) as link:
        reader, writer = await link.connect()
        writer.write_eof()
        received = bytearray()
        while piece := await reader.read(MEGABYTE):
            received += piece
            await asyncio.sleep(0.01)
        assert received == data
        writer.close()


async def test_a_bastion_sees_ciphertext_only(tmp_path, ssh_server):
    valve, data = Valve(), b"what a client says" * 1000
    async with ssh_server(tmp_path / "ssh") as server, target_server(echo) as port:
        target = Target(HOST, port)
        async with (
            running_server(target) as tunnel,
            valve.before(tunnel.port) as at,
            running_client(target, at, ssh=through(server)) as (client, endpoint),
        ):
            assert await exchange(Link(tunnel, client, Resolver({}), target, endpoint), data) == data
    assert len(valve.seen) > 2 * len(data)
    assert valve.seen[:2] == b"\x16\x03"  # a record of TLS
    assert b"what a client says" not in valve.seen
    assert HOST.encode() not in valve.seen


async def test_an_ssh_server_cannot_stand_in_for_the_source_vm(tmp_path, ssh_server, caplog):
    impostor = identity(Side.SOURCE, OTHER_SECRET)
    async with (
        ssh_server(tmp_path / "ssh") as server,
        running_server(UNUSED, end=impostor) as tunnel,
        running_client(UNUSED, tunnel.port, ssh=through(server)) as (_, endpoint),
    ):
        assert await refused(endpoint)
    assert told_by(caplog, "tunnel refused, the server hung up without a word")


async def test_an_ssh_server_with_another_host_key_is_refused_before_it_learns_a_thing(tmp_path, ssh_server, caplog):
    async with ssh_server(tmp_path / "ssh") as server:
        server.files = KeyFiles(server.files.key, write_public(tmp_path / "pinned", new_key(), new_key()))
        async with inside(server, echo) as link:
            assert await refused(link.endpoint)
        assert server.logins == 0
    (told,) = told_by(caplog, "SSH server refused, it has no pinned host key")
    assert "TUNNEL_SSH_HOST_KEYS_FILE" in told.message
    assert "Host key is not trusted" in told.fields["cause"]


async def test_one_of_several_pinned_host_keys_will_do(tmp_path, ssh_server):
    async with ssh_server(tmp_path / "ssh") as server:
        pinned = server.files.host_keys
        pinned.write_bytes(new_key().export_public_key("openssh") + b"# the old one\n" + pinned.read_bytes())
        async with inside(server, echo) as link:
            assert await echoed(link.endpoint) == b"x"


@pytest.mark.parametrize("wrong", ["key", "user"])
async def test_an_ssh_server_that_does_not_know_us_is_logged(tmp_path, ssh_server, caplog, wrong):
    async with ssh_server(tmp_path / "ssh") as server:
        if wrong == "key":
            write_private(server.files.key, new_key())
        else:
            server.user = "nobody-of-this-name"
        async with inside(server, echo) as link:
            assert await refused(link.endpoint)
    (told,) = told_by(caplog, "SSH server refuses us")
    assert "TUNNEL_SSH_KEY_FILE" in told.message
    assert "TUNNEL_SSH," in told.message


async def test_a_peer_that_is_no_ssh_server_is_logged(tmp_path, ssh_server, caplog):
    async def speak_http(_reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 2000)
        await writer.drain()

    async with (
        ssh_server(tmp_path / "ssh") as server,
        target_server(speak_http) as server.port,
        inside(server, echo) as link,
    ):
        assert await refused(link.endpoint)
    assert told_by(caplog, "SSH server refused, what answers is no SSH server")


async def test_an_ssh_server_that_does_not_forward_there_is_logged_with_the_remedy(tmp_path, ssh_server, caplog):
    async with ssh_server(tmp_path / "ssh", "127.0.0.1:9") as server, inside(server, echo) as link:
        assert [await refused(link.endpoint) for _ in range(3)] == [True] * 3
        dialled = f"127.0.0.1:{link.server.port}"
    (told,) = told_by(caplog, "SSH server refuses to forward")
    assert "AllowTcpForwarding" in told.message
    assert "PermitOpen" in told.message
    assert dialled in told.fields["cause"]


async def test_an_ssh_server_that_forwards_to_the_tunnel_alone_will_do(tmp_path, ssh_server):
    async with running_server(UNUSED) as first:
        port = first.port
    async with ssh_server(tmp_path / "ssh", f"127.0.0.1:{port}") as server, target_server(echo) as target_port:
        target = Target(HOST, target_port)
        async with (
            running_server(target, port=port),
            running_client(target, port, ssh=through(server)) as (_, endpoint),
        ):
            assert await echoed(endpoint) == b"x"


async def test_a_tunnel_server_that_the_ssh_server_does_not_reach_is_logged(tmp_path, ssh_server, caplog):
    async with ssh_server(tmp_path / "ssh") as server, inside(server, echo, at=9) as link:
        assert await refused(link.endpoint)
    (told,) = told_by(caplog, "tunnel server unreachable")
    assert "127.0.0.1:9 from the SSH server" in told.fields["cause"]


async def test_a_lost_ssh_connection_is_made_again_and_its_channels_are_reset(tmp_path, ssh_server, caplog):
    async with ssh_server(tmp_path / "ssh") as server, inside(server, echo) as link:
        before = [await link.carrying() for _ in range(3)]
        await server.cut()
        for reader, writer in before:
            with pytest.raises(ConnectionResetError):
                await reader.read(-1)
            writer.close()
        async with asyncio.timeout(PATIENCE):
            await until_echoed(link.endpoint)
        assert server.logins == 2
    (told,) = told_by(caplog, "SSH connection lost")
    assert told.fields["ssh"] == f"{server.user}@127.0.0.1:{server.port}"


async def test_an_ssh_server_that_is_away_is_logged_once_refuses_at_once_and_is_used_again(
    tmp_path, ssh_server, caplog
):
    async with ssh_server(tmp_path / "ssh") as server, inside(server, echo) as link:
        assert await echoed(link.endpoint) == b"x"
        await server.stop()
        async with asyncio.timeout(PATIENCE):
            assert [await echoed(link.endpoint) for _ in range(20)] == [None] * 20
        await server.start()
        async with asyncio.timeout(PATIENCE):
            await until_echoed(link.endpoint)
    (told,) = told_by(caplog, "SSH server unreachable")
    assert "TUNNEL_SSH" in told.message
    assert told_by(caplog, "tunnel server reached again")
    assert not told_by(caplog, "tunnel server unreachable")


async def test_a_server_that_is_silent_is_asked_by_one_connection_and_not_by_each(tmp_path, ssh_server):
    accepted = 0

    async def say_nothing(reader, _writer):
        nonlocal accepted
        accepted += 1
        await reader.read(-1)

    hasty = Timeouts(dial=0.5, handshake=0.5)
    async with (
        ssh_server(tmp_path / "ssh") as server,
        target_server(say_nothing) as server.port,
        inside(server, echo, timeouts=hasty) as link,
    ):
        assert await asyncio.gather(*(echoed(link.endpoint) for _ in range(20))) == [None] * 20
    assert accepted == 1


async def test_a_server_that_vanishes_is_noticed_by_its_silence(tmp_path, ssh_server, monkeypatch):
    """Its kernel still accepts bytes, so TCP notices nothing."""
    monkeypatch.setattr(options, "KEEPALIVE_SECONDS", 0.2)
    valve = Valve()
    async with (
        ssh_server(tmp_path / "ssh") as server,
        valve.before(server.port) as server.port,
        inside(server, echo) as link,
    ):
        reader, writer = await link.carrying()
        valve.open.clear()
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(-1), PATIENCE)
        writer.close()


def test_a_dead_link_is_noticed_within_a_minute():
    assert options.KEEPALIVE_SECONDS * (options.KEEPALIVE_COUNT + 1) < 60


async def test_new_key_files_hold_from_the_next_ssh_connection(tmp_path, ssh_server, caplog):
    async with ssh_server(tmp_path / "ssh") as server, inside(server, echo) as link:
        await link.carrying()
        key, host = new_key(), new_key()
        await server.stop()
        write_public(tmp_path / "ssh" / "authorized", key)
        write_private(tmp_path / "ssh" / "host", host)
        await server.start()
        await until_told(caplog, "SSH server refused, it has no pinned host key", link.endpoint)
        server.files.key.write_bytes(b"half a fi")  # as a copy in progress may leave it for a moment
        write_public(server.files.host_keys, host)
        await until_told(caplog, "SSH key files cannot be used", link.endpoint)
        write_private(server.files.key, key)
        async with asyncio.timeout(PATIENCE):
            await until_echoed(link.endpoint)
    (told,) = told_by(caplog, "SSH key files cannot be used")
    assert told.fields["cause"].startswith(f"TUNNEL_SSH_KEY_FILE={server.files.key}: expected an Ed25519 private key")


async def test_a_channel_that_is_given_up_is_closed_when_the_server_opens_it_after_all(tmp_path, ssh_server):
    ended = asyncio.Event()

    async def until_ended(reader, _writer):
        with contextlib.suppress(ConnectionError):
            await reader.read(-1)
        ended.set()

    valve = Valve()
    async with (
        ssh_server(tmp_path / "ssh") as server,
        valve.before(server.port) as server.port,
        target_server(until_ended) as at,
        inside(server, echo, at, timeouts=Timeouts(dial=2)) as link,
    ):
        await link.client.vms[0].dialler.login()
        valve.open.clear()
        assert await echoed(link.endpoint) is None
        valve.open.set()
        await asyncio.wait_for(ended.wait(), PATIENCE)


async def test_no_task_and_no_ssh_connection_outlives_the_client(tmp_path, ssh_server):
    async with ssh_server(tmp_path / "ssh") as server:
        before = asyncio.all_tasks()
        async with inside(server, echo) as link:
            await link.carrying()
        assert {task.get_name() for task in asyncio.all_tasks() - before if "tunnel" in task.get_name()} == set()
        async with inside(server, echo) as link:
            assert await echoed(link.endpoint) == b"x"
    assert server.logins == 2


async def test_nothing_of_the_key_or_the_users_own_ssh_is_used_or_logged(tmp_path, ssh_server, caplog, monkeypatch):
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    asked = []

    async def agent(_reader, writer):
        asked.append(writer)
        writer.close()

    listening = await asyncio.start_unix_server(agent, tmp_path / "agent")
    async with listening, ssh_server(tmp_path / "ssh") as server, inside(server, echo) as link:
        assert await echoed(link.endpoint) == b"x"
        write_private(server.files.key, new_key())
        await server.cut()
        await until_told(caplog, "SSH server refuses us", link.endpoint)
    assert not asked
    assert "PRIVATE KEY" not in logged(caplog.records)
