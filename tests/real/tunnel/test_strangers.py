"""Certificates with one fault each, handshakes that never end, and floods: a stranger's answers, and its cost."""

import asyncio
import contextlib
import functools
import logging
import ssl
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from appliance.errors import ApplianceError, IdentityRefused
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tls.certificates import authority_key, peer_name
from appliance.tunnel.limits import pending_handshakes
from appliance.tunnel.limits.pending_handshakes import PENDING_OF_ONE_MAX
from appliance.tunnel.server import TunnelServer
from tests.support import flood
from tests.support.authority import DAY, Authority
from tests.support.patience import PATIENCE
from tests.support.tls import (
    Trusting,
    ask_connect,
    careless,
    connect_request,
    key_of,
    known,
    running_client,
    running_server,
)
from tests.support.tunnel import HOST, LINK, Resolver, carries, carrying, echo, target_server, tunnel_settings

TARGET = Target(HOST, 9093)
MEGABYTE = 2**20


@functools.cache
def links_authority():
    """The link's own authority, as any holder of its secret can make it."""
    return Authority(LINK, authority_key(key_of()))


def opposite(side):
    return Side.SOURCE if side is Side.DESTINATION else Side.DESTINATION


FAULTS: dict[str, dict[str, Any]] = {
    "expired": {"begins": -3 * DAY},
    "not yet valid": {"begins": DAY},
    "self-made authority, right name": {},
    "usage of the other role": {"usage": opposite},
    "name of the other role": {"uri": lambda side: peer_name(LINK, opposite(side))},
    "name of another link": {"uri": lambda side: peer_name("orange-melon", side)},
    "no name": {"fully_named": False},
}
"""A change of a valid certificate: a value, or a function of the side."""

ALERTS = {
    "expired": "alert certificate expired",
    "not yet valid": "alert bad certificate",
    "self-made authority, right name": "alert|decrypt",
    "usage of the other role": "alert unsupported certificate",
}
"""The server's answer; without an alert, TLS accepts the certificate, and its name is refused."""


def credentials(fault, side):
    authority = Authority(LINK) if fault.startswith("self-made") else links_authority()
    changes = {name: change(side) if callable(change) else change for name, change in FAULTS[fault].items()}
    return authority.credentials(authority.leaf(side, **changes))


async def test_a_certificate_without_fault_is_accepted():
    authority = links_authority()
    end = known(authority.credentials(authority.leaf(Side.DESTINATION)))
    async with target_server(echo) as port, running_server(Target(HOST, port)) as server:
        status, channel = await ask_connect(server.port, connect_request(Target(HOST, port)), end)
        channel.reset()
    assert status == b"HTTP/1.1 200 connected"


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_server_refuses_a_client_whose_certificate_has_a_fault(fault, caplog):
    end = careless(credentials(fault, Side.DESTINATION))
    resolver = Resolver({HOST: ["127.0.0.1"]})
    async with running_server(TARGET, resolver) as server:
        if fault in ALERTS:
            with pytest.raises(IdentityRefused, match=ALERTS[fault]):
                await ask_connect(server.port, connect_request(TARGET), end)
        else:
            status, channel = await ask_connect(server.port, connect_request(TARGET), end)
            assert status.startswith(b"HTTP/1.1 400 the peer calls itself ")
            channel.close()
        await server.drain(10)
    told = "its hello or certificate is out of time" if fault in ("expired", "not yet valid") else "SHARED_SECRET"
    assert any(f"client refused: {told}" in message for message in caplog.messages)
    assert resolver.asked == []


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_client_refuses_a_server_whose_certificate_has_a_fault(fault, caplog):
    end = Trusting(known(credentials(fault, Side.SOURCE), Side.SOURCE))
    end.tls.context.verify_mode = ssl.CERT_NONE
    async with (
        TunnelServer(tunnel_settings(TARGET), end, Resolver({})) as server,
        running_client(TARGET, server.port) as (_, endpoint),
    ):
        reader, _ = await asyncio.open_connection("127.0.0.1", endpoint)
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)
    assert any(message.startswith("tunnel refused, the two VMs do not accept") for message in caplog.messages)


async def test_the_log_says_of_an_expired_certificate_that_it_has_expired(caplog):
    end = known(credentials("expired", Side.DESTINATION))
    async with running_server(TARGET) as server:
        with pytest.raises(IdentityRefused):
            await ask_connect(server.port, connect_request(TARGET), end)
        await server.drain(10)
    (told,) = [record for record in caplog.records if record.message.startswith("tunnel client refused")]
    assert told.fields["cause"] == "TLS: certificate verify failed: certificate has expired"


@contextlib.asynccontextmanager
async def flooding(port, address, count):
    """Another process that opens ``count`` connections from ``address``; yields once all have been tried."""
    command = [sys.executable, str(Path(flood.__file__)), str(port), address, str(count)]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE):
            await process.stdout.readline()
        yield
    finally:
        process.stdin.close()
        await process.wait()


async def comes_through(port, target, address):
    try:
        status, channel = await ask_connect(port, connect_request(target), address=address)
    except (ConnectionError, ApplianceError):
        return False
    channel.reset()
    return status == b"HTTP/1.1 200 connected"


async def test_ten_thousand_idle_connections_from_one_address_stop_no_peer_that_proves_itself(caplog, monkeypatch):
    monkeypatch.setattr(pending_handshakes, "OTHERS_A_SECOND", 1e6)  # a quick machine opens them beyond their rate
    caplog.set_level(logging.INFO)
    process = psutil.Process()
    async with target_server(echo) as port:
        target = Target(HOST, port)
        resolver = Resolver({HOST: ["127.0.0.1"]})
        async with (
            running_server(target, resolver, connections_max=10) as server,
            running_client(target, server.port) as (_, endpoint),
        ):
            reader, writer = await carrying(endpoint)
            descriptors, memory = process.num_fds(), process.memory_info().rss
            async with flooding(server.port, "127.0.0.2", 10_000):
                assert process.num_fds() - descriptors <= PENDING_OF_ONE_MAX + 10
                assert process.memory_info().rss - memory < 40 * MEGABYTE
                assert await carries(reader, writer, b"y")
                assert await comes_through(server.port, target, "127.0.0.1")
                assert await comes_through(server.port, target, "127.0.0.3")
                assert len(resolver.asked) == 3
            async with asyncio.timeout(PATIENCE):
                while not await comes_through(server.port, target, "127.0.0.2"):
                    await asyncio.sleep(0.05)
            writer.close()
    told = [record for record in caplog.records if record.fields.get("peer", "").startswith("127.0.0.2")]
    assert told[0].message.startswith("connections refused: too many are unauthenticated")
    assert len(told) < 10
