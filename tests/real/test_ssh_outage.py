"""What happens to the one connection of the tunnel by SSH, and to the channels in it, when it breaks."""

import asyncio

import pytest

from appliance.settings.target import Target
from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.ssh import options
from tests.support.carrying import echoed, until_echoed
from tests.support.patience import PATIENCE
from tests.support.ssh import running_client, running_server
from tests.support.tunnel import HOST, echo, target_server

pytestmark = pytest.mark.usefixtures("no_secret_in_the_log")


async def test_a_server_that_is_silent_is_asked_by_one_connection_and_not_by_each():
    accepted = 0

    async def say_nothing(reader, _writer):
        nonlocal accepted
        accepted += 1
        await reader.read(-1)

    target = Target(HOST, 9093)
    async with (
        target_server(say_nothing) as port,
        running_client(target, port, deadlines=Deadlines(handshake=1)) as (_, endpoint),
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
            async with running_server(target, port=first.port), asyncio.timeout(PATIENCE):
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
                await asyncio.wait_for(reader.read(-1), PATIENCE)
            writer.close()


def test_a_dead_link_is_noticed_within_a_minute():
    assert options.KEEPALIVE_SECONDS * (options.KEEPALIVE_COUNT + 1) < 60


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
            await asyncio.wait_for(gone.wait(), PATIENCE)
