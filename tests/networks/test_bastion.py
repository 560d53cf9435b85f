"""The tunnel by SSH and OpenSSH: as the source's end, as a bastion on the way, and as a stranger who knocks."""

import asyncio
import contextlib
import logging
import random
from dataclasses import replace

import asyncssh
import pytest

from appliance.settings.login import Login
from appliance.settings.target import Target
from appliance.settings.values import Bastion, KeyFiles, Side, SshSettings
from appliance.tunnel.ssh.keys import keys_in
from tests.support.carrying import echoed, exchange, refused, until_echoed
from tests.support.openssh import Sshd, Stranger, sshd, write_private, write_public
from tests.support.ssh import USER, keys, running_client, running_server
from tests.support.tunnel import HOST, Link, Resolver, echo, target_server

MEGABYTE = 2**20


@pytest.fixture(autouse=True)
def whole_log(caplog):
    caplog.set_level(logging.DEBUG)


def told_by(caplog, start):
    return [record for record in caplog.records if record.message.startswith(start)]


@contextlib.asynccontextmanager
async def openssh_as_the_source(server: Sshd, target: Target, files: KeyFiles | None = None):
    """Our client with an sshd in our server's place."""
    ssh = SshSettings(server.user, files or server.files, None)
    async with running_client(target, server.port, keys_in(ssh.files), ssh=ssh) as (client, endpoint):
        yield Link(server, client, Resolver({}), target, endpoint)


@contextlib.asynccontextmanager
async def through(bastion: Sshd, target: Target, server_port: int, **changes):
    """Our client with an sshd between it and our server."""
    login = Login(bastion.user, Target("127.0.0.1", bastion.port))
    ssh = SshSettings(USER, None, Bastion(replace(login, **changes), bastion.files))
    async with running_client(target, server_port, ssh=ssh) as (client, endpoint):
        yield Link(bastion, client, Resolver({}), target, endpoint)


async def test_an_openssh_server_carries_the_tunnel_in_our_servers_place(tmp_path):
    data = random.Random(1).randbytes(10 * MEGABYTE)
    async with (
        target_server(echo) as port,
        sshd(tmp_path / "source", "AllowTcpForwarding local", f"PermitOpen localhost:{port}") as server,
        openssh_as_the_source(server, Target("localhost", port)) as link,
    ):
        assert await exchange(link, data) == data
        small = [random.Random(number).randbytes(50_000) for number in range(20)]
        assert await asyncio.gather(*(exchange(link, message) for message in small)) == small


async def test_both_ends_of_a_direction_go_through_an_openssh_server(tmp_path):
    heard = asyncio.get_running_loop().create_future()

    async def turn_away(reader, writer):
        writer.write(b"no")
        writer.write_eof()
        heard.set_result(await reader.read(-1))

    async with (
        target_server(turn_away) as port,
        sshd(tmp_path / "source") as server,
        openssh_as_the_source(server, Target("localhost", port)) as link,
    ):
        reader, writer = await link.connect()
        assert await reader.read(-1) == b"no"
        writer.write(b"last will" * 10_000)
        writer.write_eof()
        assert await heard == b"last will" * 10_000
        writer.close()


async def test_a_slow_reader_gets_all_that_an_openssh_server_sent_before_it_closed(tmp_path):
    data = random.Random(3).randbytes(20 * MEGABYTE)

    async def answer_all_at_once(reader, writer):
        await reader.read(-1)
        writer.write(data)
        await writer.drain()

    async with (
        target_server(answer_all_at_once) as port,
        sshd(tmp_path / "source") as server,
        openssh_as_the_source(server, Target("localhost", port)) as link,
    ):
        reader, writer = await link.connect()
        writer.write_eof()
        received = bytearray()
        while piece := await reader.read(MEGABYTE):
            received += piece
            await asyncio.sleep(0.01)
        assert received == data
        writer.close()


async def test_what_an_openssh_server_does_not_permit_is_a_refused_target(tmp_path, caplog):
    async with (
        target_server(echo) as port,
        sshd(tmp_path / "source", "PermitOpen localhost:9") as server,
        openssh_as_the_source(server, Target("localhost", port)) as link,
    ):
        assert await refused(link.endpoint)
    assert told_by(caplog, "target refused by the tunnel server")


async def test_a_target_that_an_openssh_server_does_not_reach_is_told(tmp_path, caplog):
    async with (
        sshd(tmp_path / "source") as server,
        openssh_as_the_source(server, Target("localhost", 9)) as link,
    ):
        assert await refused(link.endpoint)
    assert told_by(caplog, "target not reached from the source VM")


async def test_an_openssh_server_with_another_host_key_is_refused(tmp_path, caplog):
    async with sshd(tmp_path / "source") as server:
        pinned = write_public(tmp_path / "pinned", asyncssh.generate_private_key("ssh-ed25519"))
        files = KeyFiles(server.files.key, pinned)
        async with openssh_as_the_source(server, Target("localhost", 9), files) as link:
            assert await refused(link.endpoint)
    (told,) = told_by(caplog, "tunnel refused")
    assert "TUNNEL_SSH_PEER_KEYS_FILE" in told.message
    assert "Host key is not trusted" in told.fields["cause"]


async def test_an_openssh_server_that_does_not_know_our_key_is_told(tmp_path, caplog):
    async with sshd(tmp_path / "source") as server:
        unknown = write_private(tmp_path / "unknown", asyncssh.generate_private_key("ssh-ed25519"))
        files = KeyFiles(unknown, server.files.peer_keys)
        async with openssh_as_the_source(server, Target("localhost", 9), files) as link:
            assert await refused(link.endpoint)
    (told,) = told_by(caplog, "tunnel refused")
    assert "TUNNEL_SSH_KEY_FILE" in told.message


async def test_the_tunnel_goes_through_a_bastion(tmp_path):
    data = random.Random(2).randbytes(10 * MEGABYTE)
    async with target_server(echo) as port, running_server(Target(HOST, port)) as server:
        permitted = f"PermitOpen 127.0.0.1:{server.port}"
        async with (
            sshd(tmp_path / "bastion", "AllowTcpForwarding local", permitted) as bastion,
            through(bastion, Target(HOST, port), server.port) as link,
        ):
            assert await exchange(link, data) == data


async def test_a_bastion_that_is_away_refuses_at_once_and_the_tunnel_recovers_with_our_server(tmp_path, caplog):
    async with target_server(echo) as port, sshd(tmp_path / "bastion") as bastion:
        target = Target(HOST, port)
        async with running_server(target) as first:
            server_port = first.port
        async with through(bastion, target, server_port) as link:
            assert await echoed(link.endpoint) is None
            async with running_server(target, port=server_port):
                await until_echoed(link.endpoint)
            await bastion.stop()
            async with asyncio.timeout(10):
                assert [await echoed(link.endpoint) for _ in range(20)] == [None] * 20
    (first_line, *_) = told_by(caplog, "tunnel server unreachable")
    assert "through the bastion" in first_line.fields["cause"]
    (told,) = told_by(caplog, "bastion unreachable: check TUNNEL_SSH_BASTION")
    assert told.fields["bastion"] == f"{bastion.user}@127.0.0.1:{bastion.port}"


async def test_a_bastion_is_pinned_too_and_told_apart_from_our_server(tmp_path, caplog):
    async with running_server(Target(HOST, 9)) as server, sshd(tmp_path / "bastion") as bastion:
        pinned = write_public(tmp_path / "pinned", asyncssh.generate_private_key("ssh-ed25519"))
        bastion.files = KeyFiles(bastion.files.key, pinned)
        async with through(bastion, Target(HOST, 9), server.port) as link:
            assert await refused(link.endpoint)
    (told,) = told_by(caplog, "bastion refused")
    assert "TUNNEL_SSH_BASTION_HOST_KEYS_FILE" in told.message
    assert not told_by(caplog, "tunnel refused")


async def test_a_bastion_that_does_not_know_us_is_told(tmp_path, caplog):
    async with (
        running_server(Target(HOST, 9)) as server,
        sshd(tmp_path / "bastion") as bastion,
        through(bastion, Target(HOST, 9), server.port, user="nobody") as link,
    ):
        assert await refused(link.endpoint)
    assert told_by(caplog, "bastion refused")


async def test_a_bastion_cannot_stand_in_for_our_server(tmp_path, caplog):
    """It sees only SSH inside its SSH: when it answers itself, its key is not the one that was derived."""
    async with sshd(tmp_path / "bastion") as bastion, through(bastion, Target(HOST, 9), bastion.port) as link:
        assert await refused(link.endpoint)
    (told,) = told_by(caplog, "tunnel refused")
    assert "Host key is not trusted" in told.fields["cause"]


def knocking(tmp_path, server_port, key=None):
    """OpenSSH's client, with the destination's key or another."""
    source = keys(Side.SOURCE).own.export_public_key("openssh").decode()
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{server_port} {source}")
    path = write_private(tmp_path / "stranger", key or keys(Side.DESTINATION).own)
    return Stranger(server_port, USER, path, known)


async def test_openssh_with_the_destinations_key_gets_to_a_listed_target_and_to_no_other(tmp_path):
    async with target_server(echo) as port, running_server(Target(HOST, port)) as server:
        stranger = knocking(tmp_path, server.port)
        listed = await stranger.ssh("-W", f"{HOST}:{port}", given=b"hello")
        others = [await stranger.ssh("-W", name) for name in (f"{HOST}:22", f"127.0.0.1:{port}")]
    assert (listed.status, listed.output) == (0, b"hello")
    assert [other.status for other in others] == [255, 255]
    assert all("administratively prohibited" in other.errors for other in others)


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        (["--", "true"], "ssh"),
        (["-t"], "ssh"),
        (["-A", "--", "true"], "ssh"),
        (["-X", "--", "true"], "ssh"),
        (["-s", "--", "sftp"], "ssh"),
        ([], "sftp"),
        (["-o", "ExitOnForwardFailure=yes", "-N", "-R", "127.0.0.1:0:127.0.0.1:9"], "ssh"),
        (["-o", "ExitOnForwardFailure=yes", "-N", "-R", "0"], "ssh"),
    ],
    ids=["command", "shell", "agent", "X11", "subsystem", "sftp", "remote forwarding", "remote SOCKS"],
)
async def test_openssh_gets_nothing_else(tmp_path, arguments, program):
    async with running_server(Target(HOST, 9)) as server:
        said = await knocking(tmp_path, server.port).ssh(*arguments, program=program)
    assert said.status == 255
    assert "refused" in said.errors or "failed" in said.errors
    assert said.output == b""


async def test_openssh_with_another_key_or_a_password_is_not_let_in(tmp_path):
    other = asyncssh.generate_private_key("ssh-ed25519")
    async with running_server(Target(HOST, 9)) as server:
        stranger = knocking(tmp_path, server.port, other)
        by_key = await stranger.ssh("-W", f"{HOST}:9")
        by_password = await stranger.ssh("-o", "PreferredAuthentications=password,keyboard-interactive", "-N")
    assert "Permission denied (publickey)" in by_key.errors
    assert "Permission denied (publickey)" in by_password.errors
