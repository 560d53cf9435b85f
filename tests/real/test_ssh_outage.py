"""What happens to the tunnel by SSH when one end comes, goes and comes back."""

import asyncio
import logging

import pytest

from appliance.errors import SettingsError
from appliance.settings.target import Target
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.ssh import options
from tests.support.carrying import echoed, until_echoed
from tests.support.ssh import link_to, running_client, running_server
from tests.support.tunnel import HOST, SECRET, echo, logged, target_server


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    yield
    assert SECRET not in logged(caplog.get_records("call"))


async def test_while_the_server_is_away_endpoints_refuse_at_once_and_recover_with_it(caplog):
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with running_server(target) as first:
            server_port = first.port
        async with running_client(target, server_port) as (_, endpoint):
            async with asyncio.timeout(2):
                assert [await echoed(endpoint) for _ in range(20)] == [None] * 20
            async with running_server(target, port=server_port), asyncio.timeout(10):
                await until_echoed(endpoint)
            async with asyncio.timeout(2):
                assert await echoed(endpoint) is None
    assert [message.partition(":")[0] for message in caplog.messages if message.startswith("tunnel server")] == [
        "tunnel server unreachable",
        "tunnel server reached again",
        "tunnel server unreachable",
    ]


async def test_a_server_that_is_silent_is_asked_by_one_connection_and_not_by_each():
    accepted = 0

    async def say_nothing(reader, _writer):
        nonlocal accepted
        accepted += 1
        await reader.read(-1)

    target = Target(HOST, 9093)
    async with (
        target_server(say_nothing) as port,
        running_client(target, port, deadlines=Deadlines(dial=0.1, handshake=0.2)) as (_, endpoint),
    ):
        assert await asyncio.gather(*(echoed(endpoint) for _ in range(20))) == [None] * 20
    assert accepted == 1


async def test_a_connection_that_dies_takes_its_channels_with_it_and_the_next_makes_a_new_one():
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with running_server(target) as first, running_client(target, first.port) as (_, endpoint):
            reader, writer = await asyncio.open_connection("127.0.0.1", endpoint)
            writer.write(b"x")
            await reader.readexactly(1)
            await first.drain(0)
            with pytest.raises(ConnectionResetError):
                await reader.read(-1)
            writer.close()
            async with running_server(target, port=first.port), asyncio.timeout(10):
                await until_echoed(endpoint)


async def test_a_peer_that_vanishes_is_noticed_by_its_silence(monkeypatch):
    """Its kernel still takes bytes, which keeps TCP content."""
    monkeypatch.setattr(options, "KEEPALIVE_SECONDS", 0.2)
    frozen = asyncio.Event()

    async def freeze_on_the_way(reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", server_port)

        async def forward(source, sink):
            while data := await source.read(2**16):
                if frozen.is_set():
                    await asyncio.Event().wait()
                sink.write(data)

        try:
            await asyncio.gather(forward(reader, far_writer), forward(far_reader, writer))
        finally:
            far_writer.transport.abort()

    async with target_server(echo) as port, running_server(Target(HOST, port)) as server:
        server_port = server.port
        async with (
            target_server(freeze_on_the_way) as proxy_port,
            running_client(Target(HOST, port), proxy_port) as (_, endpoint),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", endpoint)
            writer.write(b"x")
            await reader.readexactly(1)
            frozen.set()
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(reader.read(-1), 5)
            writer.close()


def test_a_dead_link_is_noticed_within_a_minute():
    assert options.KEEPALIVE_SECONDS * (options.KEEPALIVE_COUNT + 1) < 60


async def test_a_target_that_is_away_harms_no_other_target(caplog):
    async with link_to(echo) as link:
        away = Target("b9.pattern.example", 9092)
        link.resolver.addresses[away.host] = ["127.0.0.9"]
        other = await link.client.open_endpoint(away, "127.0.0.1", 0)
        for _ in range(3):
            assert await echoed(other) is None
            assert await echoed(link.endpoint) == b"x"
    told = [message for message in caplog.messages if message.startswith("target not reached from the source VM")]
    assert len(told) == 1


async def test_a_channel_that_is_given_up_is_closed_when_the_server_opens_it_after_all():
    may_resolve = asyncio.Event()
    gone = asyncio.Event()

    async def find_late(_host):
        await may_resolve.wait()
        return ["127.0.0.1"]

    async def until_gone(reader, _writer):
        try:
            await reader.read(-1)
        except ConnectionError:
            gone.set()

    async with target_server(until_gone) as port:
        target = Target(HOST, port)
        async with (
            running_server(target, find_late) as server,
            running_client(target, server.port, deadlines=Deadlines(answer=0.2)) as (_, endpoint),
        ):
            assert await echoed(endpoint) is None
            may_resolve.set()
            await asyncio.wait_for(gone.wait(), 5)


async def test_a_client_that_leaves_while_its_target_is_dialled_leaves_no_connection_behind():
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
        async with running_server(target, find_late) as server:
            async with running_client(target, server.port) as (_, endpoint):
                _, writer = await asyncio.open_connection("127.0.0.1", endpoint)
                await asked.wait()
                writer.close()
            may_resolve.set()
            await asyncio.wait_for(server.drain(5), 2)


async def test_a_drain_while_a_target_is_dialled_leaves_no_task_behind():
    asked = asyncio.Event()

    async def never_find(_host):
        asked.set()
        await asyncio.Event().wait()

    target = Target(HOST, 9093)
    before = asyncio.all_tasks()
    async with running_server(target, never_find) as server, running_client(target, server.port) as (_, endpoint):
        connecting = asyncio.create_task(echoed(endpoint))
        await asked.wait()
        await server.drain(0)
        assert await connecting is None
    assert asyncio.all_tasks() == before


async def test_a_drain_lets_a_running_connection_finish_and_refuses_new_ones():
    async with link_to(echo) as link:
        reader, writer = await link.connect()
        writer.write(b"before")
        assert await reader.readexactly(6) == b"before"
        draining = asyncio.create_task(link.server.drain(10))
        assert await echoed(link.endpoint) is None
        writer.write(b"during")
        assert await reader.readexactly(6) == b"during"
        assert not draining.done()
        writer.write_eof()
        assert await reader.read(-1) == b""
        await draining
        writer.close()


async def test_a_drain_ends_what_does_not_end_by_itself():
    async with link_to(echo) as link:
        reader, writer = await link.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        await link.server.drain(0.1)
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)
        writer.close()


async def test_closing_the_client_ends_its_connections_and_frees_its_ports():
    async with link_to(echo) as link:
        reader, writer = await link.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        await link.client.drain(0)
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await link.connect()


async def test_no_task_outlives_its_end():
    before = asyncio.all_tasks()
    async with link_to(echo) as link:
        assert await echoed(link.endpoint) == b"x"
        pending = [await link.connect() for _ in range(5)]
    assert asyncio.all_tasks() == before
    for _, writer in pending:
        writer.transport.abort()


async def test_a_port_that_is_taken_is_one_clear_line_that_names_the_variable():
    async with running_server(Target(HOST, 9093)) as first:
        with pytest.raises(SettingsError) as refusal:
            async with running_server(Target(HOST, 9093), port=first.port):
                pass
    (fault,) = refusal.value.faults
    assert fault.startswith(f"TUNNEL_LISTEN, TUNNEL_PORT: cannot listen on 127.0.0.1:{first.port}: address already")
