"""One end starts, stops and starts again, directly and inside SSH."""

import asyncio

import pytest

from appliance.errors import SettingsError
from appliance.settings.target import Target
from appliance.tunnel.model.connect import Timeouts
from tests.support.carrying import echoed, until_echoed
from tests.support.patience import PATIENCE
from tests.support.tunnel import HOST, carries, echo, target_server

pytestmark = pytest.mark.usefixtures("no_secret_in_the_log")


async def test_while_the_server_is_away_endpoints_refuse_at_once_and_recover_with_it(ends, caplog):
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with ends.running_server(target) as first:
            server_port = first.port
        async with ends.running_client(target, server_port) as (_, endpoint):
            async with asyncio.timeout(PATIENCE):
                assert [await echoed(endpoint) for _ in range(20)] == [None] * 20
            async with ends.running_server(target, port=server_port), asyncio.timeout(PATIENCE):
                await until_echoed(endpoint)
            async with asyncio.timeout(PATIENCE):
                assert await echoed(endpoint) is None
    assert [message.partition(":")[0] for message in caplog.messages if message.startswith("tunnel server")] == [
        "tunnel server unreachable",
        "tunnel server reached again",
        "tunnel server unreachable",
    ]
    (first_line, *_) = [message for message in caplog.messages if "unreachable" in message]
    assert "SOURCE_SIDE_TUNNEL_IP and TUNNEL_PORT" in first_line
    assert "firewall" in first_line


async def test_a_server_that_is_silent_makes_one_client_wait_and_not_all(ends):
    accepted = 0

    async def say_nothing(reader, _writer):
        nonlocal accepted
        accepted += 1
        await reader.read(-1)
        await asyncio.Event().wait()

    target = Target(HOST, 9093)
    async with (
        target_server(say_nothing) as port,
        ends.running_client(target, port, timeouts=Timeouts(handshake=0.3)) as (_, endpoint),
    ):
        assert [await echoed(endpoint) for _ in range(20)] == [None] * 20
    assert accepted < 5


async def test_a_target_that_is_away_harms_no_other_target(ends, caplog):
    async with ends.link_to(echo) as link:
        away = Target("b9.pattern.example", 9092)
        link.resolver.addresses[away.host] = ["127.0.0.9"]
        other = await link.client.open_endpoint(away, "127.0.0.1", 0)
        for _ in range(3):
            assert await echoed(other) is None
            assert await echoed(link.endpoint) == b"x"
    told = [message for message in caplog.messages if message.startswith("target not reached from the source VM")]
    assert len(told) == 1


async def test_a_client_that_leaves_while_its_target_is_dialled_leaves_no_connection_behind(ends):
    may_resolve = asyncio.Event()
    asked = asyncio.Event()
    accepted = []

    async def find_late(_host):
        asked.set()
        await may_resolve.wait()
        return ["127.0.0.1"]

    async def note(reader, _writer):
        accepted.append(reader)
        await reader.read(-1)

    async with target_server(note) as port:
        target = Target(HOST, port)
        async with ends.running_server(target, find_late) as server:
            async with ends.running_client(target, server.port) as (_, endpoint):
                _, writer = await asyncio.open_connection("127.0.0.1", endpoint)
                await asked.wait()
                writer.close()
            may_resolve.set()
            await asyncio.wait_for(server.drain(60), 10)


async def test_a_drain_while_a_target_is_dialled_leaves_no_task_behind(ends):
    asked = asyncio.Event()

    async def never_find(_host):
        asked.set()
        await asyncio.Event().wait()

    target = Target(HOST, 9093)
    before = asyncio.all_tasks()
    async with (
        ends.running_server(target, never_find) as server,
        ends.running_client(target, server.port) as (_, endpoint),
    ):
        connecting = asyncio.create_task(echoed(endpoint))
        await asked.wait()
        await server.drain(0)
        assert await connecting is None
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("end", ["server", "client"])
async def test_a_drain_of_either_end_lets_a_running_connection_finish_and_refuses_new_ones(ends, end):
    async with ends.link_to(echo) as link:
        reader, writer = await link.connect()
        assert await carries(reader, writer, b"before")
        draining = asyncio.create_task(getattr(link, end).drain(10))
        assert await echoed(link.endpoint) is None
        assert await carries(reader, writer, b"during")
        assert not draining.done()
        writer.write_eof()
        assert await reader.read(-1) == b""
        await draining
        writer.close()


async def test_a_drain_ends_what_does_not_end_by_itself(ends):
    async with ends.link_to(echo) as link:
        reader, writer = await link.carrying()
        await link.server.drain(0.1)
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)
        writer.close()


async def test_closing_the_client_ends_its_connections_and_frees_its_ports(ends):
    async with ends.link_to(echo) as link:
        reader, writer = await link.carrying()
        await link.client.drain(0)
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await link.connect()


async def test_no_task_outlives_its_end(ends):
    before = asyncio.all_tasks()
    async with ends.link_to(echo) as link:
        assert await echoed(link.endpoint) == b"x"
        pending = [await link.connect() for _ in range(5)]
    assert asyncio.all_tasks() == before
    for _, writer in pending:
        writer.transport.abort()


async def test_a_port_that_is_taken_is_one_clear_line_that_names_the_variable(ends):
    async with ends.running_server(Target(HOST, 9093)) as first:
        with pytest.raises(SettingsError) as refusal:
            async with ends.running_server(Target(HOST, 9093), port=first.port):
                pass
    (fault,) = refusal.value.faults
    assert fault.startswith(f"TUNNEL_LISTEN, TUNNEL_PORT: cannot listen on 127.0.0.1:{first.port}: address already")


async def test_an_endpoint_that_cannot_be_had_names_the_variable(ends):
    async with ends.running_client(Target(HOST, 9093), 1) as (client, endpoint):
        with pytest.raises(SettingsError, match="TUNNEL_ENDPOINT_NETWORK: cannot listen on"):
            await client.open_endpoint(Target(HOST, 9094), "127.0.0.1", endpoint)


async def test_case_26_a_try_that_ends_unexpectedly_is_not_waited_for_by_the_breaker(ends, monkeypatch):
    """Before, the breaker's single try never ended, and every connection was refused until a restart."""

    async def stumble(_make):
        stumbled.set()
        raise ZeroDivisionError

    stumbled = asyncio.Event()
    async with ends.link_to(echo) as link:
        with monkeypatch.context() as patched:
            patched.setattr(link.client.vms[0].dialler, "dial", stumble)
            link.client.vms[0].pause(asyncio.get_running_loop().time())
            async with asyncio.timeout(PATIENCE):
                while not stumbled.is_set():
                    assert await echoed(link.endpoint) is None
                    await asyncio.sleep(0.02)
        async with asyncio.timeout(PATIENCE):
            await until_echoed(link.endpoint)
