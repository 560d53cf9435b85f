"""The counters of both ends, while connections are carried and refused."""

import asyncio

from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tunnel.limits.counters import Counters, Refusal
from appliance.tunnel.model import servers
from tests.support.dns import dead_port
from tests.support.patience import PATIENCE
from tests.support.tls import identity, link_to, running_client, running_server
from tests.support.tunnel import echo

ENDED = "COMPLETE"


async def until(counters: Counters, **expected: int) -> None:
    """Wait until these counters have these values."""
    async with asyncio.timeout(PATIENCE):
        while any(getattr(counters, name) != value for name, value in expected.items()):
            await asyncio.sleep(0.01)


async def test_both_ends_count_bytes_while_they_flow_and_ends_when_it_is_over():
    async with link_to(echo) as link:
        reader, writer = await link.connect()
        writer.write(b"x" * 100_000)
        assert len(await reader.readexactly(100_000)) == 100_000
        for counters in (link.client.counters, link.server.counters):
            assert (counters.accepted, counters.open, counters.carrying) == (1, 1, 1)
            assert (counters.to_target.bytes, counters.from_target.bytes) == (100_000, 100_000)
            assert sum(counters.handshakes.counts) == sum(counters.dials.counts) == 1
            assert not counters.ended
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        for counters in (link.client.counters, link.server.counters):
            await until(counters, accepted=1, open=0, carrying=0)
            assert counters.ended == {ENDED: 1}
            assert not counters.refused
        assert link.client.counters.server_fault == ""


async def test_a_connection_that_waits_for_its_target_is_open_and_carries_nothing():
    asked = asyncio.Event()

    async def never(_host: str) -> tuple[str, ...]:
        asked.set()
        await asyncio.Event().wait()
        return ()

    async with link_to(echo, resolve=never) as link:
        _, writer = await link.connect()
        await asked.wait()
        for counters in (link.client.counters, link.server.counters):
            assert (counters.accepted, counters.open, counters.carrying) == (1, 1, 0)
        writer.close()


async def test_a_target_that_is_not_allowed_is_counted_at_both_ends():
    allowed, other = Target("b0.orange.example", 9092), Target("b1.orange.example", 9092)
    async with running_server(allowed) as server, running_client(other, server.port) as (client, endpoint):
        await refused(endpoint)
        assert client.counters.refused == server.counters.refused == {Refusal.TARGET: 1}
        assert client.counters.server_fault == ""


async def test_a_wrong_secret_is_counted_at_both_ends():
    stranger = identity(Side.DESTINATION, "another-uYw0kTq3sVxG8mJb2nRz5cEa")
    target = Target("b0.orange.example", 9092)
    async with running_server(target) as server, running_client(target, server.port, stranger) as (client, endpoint):
        await refused(endpoint)
        await until(client.counters, open=0)
        assert client.counters.refused == server.counters.refused == {Refusal.IDENTITY: 1}
        assert (client.counters.accepted, server.counters.accepted) == (1, 0)
        assert client.counters.server_fault


async def test_a_server_that_is_away_is_counted_and_the_next_connection_is_not_even_tried(monkeypatch):
    monkeypatch.setattr(servers, "FIRST_DELAY", PATIENCE)
    async with running_client(Target("b0.orange.example", 9092), dead_port()) as (client, endpoint):
        assert client.counters.server_fault is None
        await refused(endpoint)
        await refused(endpoint)
        assert client.counters.refused == {Refusal.PEER_UNREACHABLE: 1, Refusal.AWAY: 1}
        assert client.counters.accepted == 2
        assert "connection refused" in client.counters.server_fault


async def refused(port: int) -> None:
    """A connection that is accepted and ended without a byte."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        assert await reader.read() == b""
    except ConnectionResetError:
        pass
    finally:
        writer.close()
