"""What both ends count, while connections go through them and are refused."""

import asyncio

from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tunnel.limits import breaker
from appliance.tunnel.model.counters import Refusal, Tally
from tests.support.dns import dead_port
from tests.support.patience import PATIENCE
from tests.support.tls import identity, link_to, running_client, running_server
from tests.support.tunnel import echo

ENDED = "COMPLETE"


async def until(tally: Tally, **expected: int) -> None:
    """Wait until these numbers of a tally are so."""
    async with asyncio.timeout(PATIENCE):
        while any(getattr(tally, name) != value for name, value in expected.items()):
            await asyncio.sleep(0.01)


async def test_both_ends_count_bytes_while_they_flow_and_ends_when_it_is_over():
    async with link_to(echo) as link:
        reader, writer = await link.connect()
        writer.write(b"x" * 100_000)
        assert len(await reader.readexactly(100_000)) == 100_000
        for tally in (link.client.tally, link.server.tally):
            assert (tally.accepted, tally.open, tally.carrying) == (1, 1, 1)
            assert (tally.to_target.bytes, tally.from_target.bytes) == (100_000, 100_000)
            assert sum(tally.handshakes.counts) == sum(tally.dials.counts) == 1
            assert not tally.ended
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        for tally in (link.client.tally, link.server.tally):
            await until(tally, accepted=1, open=0, carrying=0)
            assert tally.ended == {ENDED: 1}
            assert not tally.refused
        assert link.client.tally.server_fault == ""


async def test_a_connection_that_waits_for_its_target_is_open_and_carries_nothing():
    asked = asyncio.Event()

    async def never(_host: str) -> tuple[str, ...]:
        asked.set()
        await asyncio.Event().wait()
        return ()

    async with link_to(echo, resolve=never) as link:
        _, writer = await link.connect()
        await asked.wait()
        for tally in (link.client.tally, link.server.tally):
            assert (tally.accepted, tally.open, tally.carrying) == (1, 1, 0)
        writer.close()


async def test_a_target_that_is_not_allowed_is_counted_at_both_ends():
    allowed, other = Target("b0.orange.example", 9092), Target("b1.orange.example", 9092)
    async with running_server(allowed) as server, running_client(other, server.port) as (client, endpoint):
        await refused(endpoint)
        assert client.tally.refused == server.tally.refused == {Refusal.TARGET: 1}
        assert client.tally.server_fault == ""


async def test_a_wrong_secret_is_counted_at_both_ends():
    stranger = identity(Side.DESTINATION, "another-uYw0kTq3sVxG8mJb2nRz5cEa")
    target = Target("b0.orange.example", 9092)
    async with running_server(target) as server, running_client(target, server.port, stranger) as (client, endpoint):
        await refused(endpoint)
        await until(client.tally, open=0)
        assert client.tally.refused == server.tally.refused == {Refusal.IDENTITY: 1}
        assert (client.tally.accepted, server.tally.accepted) == (1, 0)
        assert client.tally.server_fault


async def test_a_server_that_is_away_is_counted_and_the_next_connection_is_not_even_tried(monkeypatch):
    monkeypatch.setattr(breaker, "FIRST_DELAY", PATIENCE)
    async with running_client(Target("b0.orange.example", 9092), dead_port()) as (client, endpoint):
        assert client.tally.server_fault is None
        await refused(endpoint)
        await refused(endpoint)
        assert client.tally.refused == {Refusal.PEER_UNREACHABLE: 1, Refusal.AWAY: 1}
        assert client.tally.accepted == 2
        assert "connection refused" in client.tally.server_fault


async def refused(port: int) -> None:
    """A connection that is accepted and ended without a byte."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        assert await reader.read() == b""
    except ConnectionResetError:
        pass
    finally:
        writer.close()
