"""The status of the server's end: one document for the client, nothing for a stranger, and any answer is bounded."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from appliance.errors import ApplianceError, IdentityRefused, PeerError, TargetRefused, TimedOut, Unreachable
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tls.certificates import make_credentials
from appliance.tls.identity import LinkTls
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.limits.counters import Counters, Refusal
from appliance.tunnel.model import servers
from appliance.tunnel.model.connect import STATUS, STATUS_SIZE_MAX, Timeouts
from appliance.tunnel.server import TunnelServer
from appliance.tunnel.stream.tcp_channel import open_channels
from appliance.tunnel.stream.tls_channel import TlsChannel
from tests.support.carrying import echoed, refused
from tests.support.dns import dead_port
from tests.support.patience import PATIENCE
from tests.support.tls import ask_connect, careless, connect_request, identity, key_of, known, link_to, running_server
from tests.support.tunnel import HOST, SECRET, Ends, Resolver, carries, echo, target_server, tunnel_settings

OTHER_SECRET = "another-9fTz2kLq8wXe4vBn6mRc1yUa"
UNUSED = Target(HOST, 9093)
CONNECTED = b"HTTP/1.1 200 connected\r\n\r\n"
MEGABYTE = 2**20


class Status:
    """Documents of the server's end, as it stands when one is made."""

    def __init__(self) -> None:
        self.made = 0
        self.counters = Counters()

    def __call__(self) -> bytes:
        self.made += 1
        return json.dumps({"open": self.counters.open, "waiting": self.counters.open - self.counters.carrying}).encode()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The messages of the log from warning on."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def closed(counters: Counters) -> None:
    """Wait until an end has no open connection."""
    async with asyncio.timeout(PATIENCE):
        while counters.open:
            await asyncio.sleep(0.01)


async def test_the_client_gets_the_servers_document_which_has_the_brokers_connections_only(ends: Ends) -> None:
    status = Status()
    async with ends.link_to(echo, status=status) as link:
        status.counters = link.server.counters
        assert json.loads(await link.client.server_status()) == {"open": 0, "waiting": 0}
        reader, writer = await link.carrying()
        for _ in range(3):
            assert json.loads(await link.client.server_status()) == {"open": 1, "waiting": 0}
        assert await carries(reader, writer, b"y")
        client, server = link.client.counters, link.server.counters
        assert (client.accepted, client.open, server.carrying) == (1, 1, 1)
        assert (server.accepted, link.resolver.asked) == (5, [HOST])
        assert not client.refused + server.refused
        writer.close()
        await closed(server)
    assert status.made == 4


@pytest.mark.parametrize(
    "caps", [{"connections_max": 1}, {"at_client": {"connections_max": 1}}], ids=["source", "destination"]
)
async def test_the_status_takes_no_slot_and_is_told_while_all_are_taken(caps: dict[str, object]) -> None:
    async with link_to(echo, status=Status(), **caps) as link:
        _reader, writer = await link.carrying()
        waiting = asyncio.create_task(echoed(link.endpoint))
        for _ in range(5):
            assert await link.client.server_status()
        assert not waiting.done()
        assert not link.server.counters.refused
        writer.close()
        async with asyncio.timeout(PATIENCE):
            assert await waiting == b"x"


async def test_an_older_server_refuses_without_a_trouble_here_and_with_one_line_there(caplog) -> None:
    async with link_to(echo) as link:
        for _ in range(5):
            with pytest.raises(TargetRefused, match=r"tunnel-status\.invalid:1 is not on the allow-list"):
                await link.client.server_status()
        assert link.server.counters.refused == {Refusal.TARGET: 5}
        assert (link.client.counters.refused, link.client.counters.server_fault) == ({}, None)
        assert await echoed(link.endpoint) == b"x"
    assert [message.partition(":")[0] for message in warnings(caplog)] == ["target refused"]


async def test_a_newer_server_changes_nothing_for_an_older_client() -> None:
    status = Status()
    async with target_server(echo) as port, running_server(Target(HOST, port), status=status) as server:
        for target, expected in ((Target(HOST, port), b"200 connected"), (UNUSED, b"403 ")):
            answer, channel = await ask_connect(server.port, connect_request(target))
            assert answer.startswith(b"HTTP/1.1 " + expected)
            channel.reset()
    assert status.made == 0


def certified(secret: str, side: Side, cluster: str = "grape") -> LinkTls:
    """A client that knows the link's secret, accepts any server, and shows this certificate."""
    ids = ("orange", cluster)
    return careless(make_credentials(key_of(secret, ids), "-".join(ids), side))


STRANGERS = {
    "another secret": lambda: known(secret=OTHER_SECRET),
    "a certificate of another secret": lambda: certified(OTHER_SECRET, Side.DESTINATION),
    "the role of the source": lambda: certified(SECRET, Side.SOURCE),
    "another link": lambda: certified(SECRET, Side.DESTINATION, "melon"),
}


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_a_stranger_gets_no_status_and_none_is_made_for_it(stranger: str) -> None:
    status = Status()
    async with running_server(UNUSED, status=status) as server:
        with pytest.raises(IdentityRefused):
            await ask_connect(server.port, connect_request(STATUS), STRANGERS[stranger]())
        assert server.counters.refused == {Refusal.IDENTITY: 1}
    assert status.made == 0


@pytest.mark.parametrize(
    "head",
    [
        connect_request(STATUS).replace(b"CONNECT", b"GET"),
        connect_request(STATUS) + connect_request(UNUSED),
        connect_request(STATUS).replace(b"tunnel", b"TUNNEL"),
        connect_request(Target(STATUS.host, 2)),
        connect_request(Target(f"x.{STATUS.host}", STATUS.port)),
    ],
    ids=lambda head: head[:60].decode(),
)
async def test_only_the_one_head_of_our_client_gets_the_status(head: bytes) -> None:
    status = Status()
    async with running_server(UNUSED, status=status) as server:
        answer, channel = await ask_connect(server.port, head)
        channel.close()
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 403 "))
    assert status.made == 0


Act = Callable[[TlsChannel], Awaitable[None]]


class OddServer(TunnelServer):
    """A server that does something else than to answer with its status."""

    def __init__(self, target: Target, act: Act) -> None:
        super().__init__(tunnel_settings(target), identity(Side.SOURCE), Resolver({HOST: ["127.0.0.1"]}))
        self._act = act

    async def _read_target(self, near: TlsChannel, connect) -> Target:
        target = await super()._read_target(near, connect)
        if target == STATUS:
            await self._act(near)
            near.reset()
            raise Unreachable("it has acted")
        return target


@contextlib.asynccontextmanager
async def odd(act: Act, seconds: float = PATIENCE) -> AsyncIterator[tuple[TunnelClient, OddServer]]:
    """A client and a server that acts; afterwards a broker is reached at once, and nothing was counted or logged."""
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with OddServer(target, act) as server:
            settings = tunnel_settings(target, port=server.port)
            async with TunnelClient(settings, identity(Side.DESTINATION), Timeouts(status=seconds)) as client:
                endpoint = await client.open_endpoint(target, "127.0.0.1", 0)
                yield client, server
                assert (client.counters.refused, client.counters.server_fault) == ({}, None)
                if server.listening:
                    assert await echoed(endpoint) == b"x"


async def silence(near: TlsChannel) -> None:
    """Say nothing until the client is gone."""
    while await near.receive():
        pass


async def say(*parts: bytes, near: TlsChannel) -> None:
    """Send the parts, and nothing more."""
    for part in parts:
        near.send(part)
        await asyncio.sleep(0)


def said(*parts: bytes) -> Act:
    return lambda near: say(*parts, near=near)


def said_then_silence(*parts: bytes) -> Act:
    async def act(near: TlsChannel) -> None:
        await say(*parts, near=near)
        await silence(near)

    return act


@pytest.mark.parametrize(
    "parts", [(), (b"HTTP/1.1 200 conn",), (CONNECTED,), (CONNECTED, b'{"side": "sou')], ids=lambda parts: len(parts)
)
async def test_a_server_that_falls_silent_is_waited_for_so_long_and_no_longer(parts, caplog) -> None:
    async with odd(said_then_silence(*parts), seconds=0.3) as (client, server):
        with pytest.raises(TimedOut, match=r"no status from 127\.0\.0\.1:\d+ within 0\.3 s"):
            await client.server_status()
        await closed(server.counters)
    assert not [line for line in warnings(caplog) if not line.startswith("tunnel port dialled")]


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (said(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), PeerError, "no answer to CONNECT"),
        (said(b"x" * MEGABYTE), PeerError, "no answer to CONNECT"),
        (said(b"HTTP/1.1 200 connected\r\n" + b"X: x\r\n" * MEGABYTE), PeerError, "no answer to CONNECT"),
        (said_then_silence(CONNECTED, *[bytes(MEGABYTE)] * 100), PeerError, f"more than {STATUS_SIZE_MAX} bytes"),
        (said(CONNECTED, b'{"side": "sou'), Unreachable, "connection lost"),
    ],
    ids=["another protocol", "no head", "an endless head", "100 MB", "a cut"],
)
async def test_an_answer_that_is_no_document_is_an_error_and_no_trouble_of_the_tunnel(
    act: Act, kind: type[ApplianceError], words: str, caplog
) -> None:
    async with odd(act) as (client, server):
        with pytest.raises(kind, match=words):
            await client.server_status()
        await closed(server.counters)
    assert not [line for line in warnings(caplog) if not line.startswith("tunnel port dialled")]


async def test_a_server_that_is_stopped_in_the_middle_cuts_the_document() -> None:
    begun = asyncio.Event()

    async def act(near: TlsChannel) -> None:
        near.send(CONNECTED + b'{"side": "sou')
        begun.set()
        await silence(near)

    async with odd(act) as (client, server):
        asking = asyncio.create_task(client.server_status())
        await begun.wait()
        await server.drain(0)
        with pytest.raises(Unreachable, match="connection lost"):
            await asking


async def test_a_request_that_is_given_up_leaves_no_connection() -> None:
    begun = asyncio.Event()

    async def act(near: TlsChannel) -> None:
        begun.set()
        await silence(near)

    async with odd(act) as (client, server):
        asking = asyncio.create_task(client.server_status())
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await closed(server.counters)


async def test_a_server_that_is_away_is_not_tried_for_its_status(monkeypatch) -> None:
    monkeypatch.setattr(servers, "FIRST_DELAY", PATIENCE)
    settings = tunnel_settings(UNUSED, port=dead_port())
    async with TunnelClient(settings, identity(Side.DESTINATION)) as client:
        endpoint = await client.open_endpoint(UNUSED, "127.0.0.1", 0)
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1 port \d+: connection refused"):
            await client.server_status()
        assert (client.counters.refused, client.counters.server_fault) == ({}, None)
        assert await refused(endpoint)
        with pytest.raises(Unreachable, match=r"not reached at the last attempt: .* connection refused"):
            await client.server_status()
        assert client.counters.refused == {Refusal.PEER_UNREACHABLE: 1}


async def test_case_251_a_server_that_ends_late_and_never_closes_leaves_no_connection() -> None:
    """Before, the deadline cut the last word short, and the connection had no owner any more."""
    before = set(open_channels)

    async def act(near: TlsChannel) -> None:
        near.send(CONNECTED + b"{}")
        await asyncio.sleep(0.2)
        near.send_eof()
        await asyncio.sleep(2)

    async with odd(act, seconds=0.5) as (client, server):
        with contextlib.suppress(TimedOut):
            await client.server_status()
        ours = {channel for channel in open_channels - before if channel.peer == f"127.0.0.1:{server.port}"}
        assert not {channel for channel in ours if not channel._transport.is_closing()}
        await closed(server.counters)
