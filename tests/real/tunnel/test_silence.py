"""A stranger gets no byte at the tunnel's port, not even an alert; and its cost to the server is bounded."""

import asyncio
import contextlib
import socket
import ssl
import time

import pytest

from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tls.engine import TlsLayer
from appliance.tls.first_flight import ClientWire
from appliance.tunnel.first_flight_reader import READS_MAX
from appliance.tunnel.limits import pending_handshakes
from appliance.tunnel.limits.counters import Refusal
from appliance.tunnel.limits.pending_handshakes import PENDING_MAX, PENDING_OF_ONE_MAX
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.outage_log import LINES_A_MINUTE
from bench.lib.tunnel_strangers import flood, hello
from tests.support.patience import PATIENCE
from tests.support.tls import ask_connect, connect_request, identity, link_to, running_client, running_server
from tests.support.tunnel import HOST, LINK, carries, carrying, echo, target_server

UNUSED = Target(HOST, 9093)


def ordinary_hello(**changes):
    """The ClientHello that any program with the installed OpenSSL sends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for name, value in changes.items():
        setattr(context, name, value)
    tls = TlsLayer(context)
    tls.start()
    return tls.outgoing()


def sealed_hello(ahead=0.0):
    """The first flight of our own client, with a clock that is this number of seconds ahead."""
    known = identity(Side.DESTINATION).tls
    tls = TlsLayer(known.context, ClientWire(known.tokens, time.time() + ahead))
    tls.start()
    return tls.outgoing()


SPOKEN = {
    "nothing, and our end": lambda: b"",
    "a web client": lambda: connect_request(UNUSED),
    "an SSH client": lambda: b"SSH-2.0-OpenSSH_9.2\r\n",
    "a Kafka client": lambda: bytes.fromhex("00000012001200030000000100087374 72616e676572".replace(" ", "")),
    "TLS 1.3": ordinary_hello,
    "half of a hello": lambda: ordinary_hello()[:100],
    "a hello and more": lambda: ordinary_hello() + b"\x14\x03\x03\x00\x01\x01",
    "a finite field of 8192 bits": hello,
    "an alert": lambda: b"\x15\x03\x03\x00\x02\x02\x28",
    "another link's token": lambda: sealed_hello()[:44] + bytes(32) + sealed_hello()[76:],
    "a token of yesterday": lambda: sealed_hello(-86400),
    "a record of 16 KiB": lambda: b"\x16\x03\x01\x40\x00\x01" + bytes(16383),
}


async def answer_to(port, said):
    """The server's full response to a client that sends this, and then ends its direction."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    writer.write_eof()
    try:
        async with asyncio.timeout(PATIENCE):
            return await reader.read(-1)
    except ConnectionResetError:
        return b""
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("spoken", SPOKEN)
async def test_a_client_without_a_proof_of_the_secret_gets_not_a_byte(spoken):
    async with running_server(UNUSED) as server:
        assert await answer_to(server.port, SPOKEN[spoken]()) == b""
        assert server.counters.accepted == 0
        assert sum(server.counters.refused.values()) == 1


@contextlib.asynccontextmanager
async def recorder(port):
    """A wiretapped line to ``port``: its port, and the first bytes of each client."""
    heard = []

    async def listen_in(reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", port)

        async def carry(source, sink, keep):
            while data := await source.read(2**16):
                if keep:
                    heard.append(data)
                    keep = False
                sink.write(data)
            sink.write_eof()

        with contextlib.suppress(ConnectionError):
            await asyncio.gather(carry(reader, back, True), carry(there, writer, False))
        back.close()

    async with target_server(listen_in) as at:
        yield at, heard


async def test_a_recorded_hello_is_played_again_for_nothing(caplog):
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with (
            running_server(target) as server,
            recorder(server.port) as (line, heard),
            running_client(target, line) as (_, endpoint),
        ):
            reader, writer = await carrying(endpoint)
            assert heard
            for recorded in heard:
                assert await answer_to(server.port, recorded) == b""
            assert await carries(reader, writer, b"y")
            writer.close()
    assert any("recorded" in record.fields.get("cause", "") for record in caplog.records if hasattr(record, "fields"))


async def test_a_hello_that_never_arrived_gives_its_thief_bytes_that_he_cannot_read():
    """A thief who sends a hello before its owner lacks the key of its key share: no certificate, no name."""
    async with running_server(UNUSED, timeouts=Timeouts(handshake=0.3, last_word=0.1)) as server:
        answer = await answer_to(server.port, sealed_hello())
    assert answer
    assert not any(word in answer for word in (b"replicator", *LINK.encode().split(b"-")))


async def test_a_clock_that_is_wrong_is_logged_by_the_source_as_such(caplog):
    async with running_server(UNUSED) as server:
        assert await answer_to(server.port, sealed_hello(600)) == b""
    (told,) = [record for record in caplog.records if "clock here" in record.message]
    assert "600 s ahead of ours" in told.fields["cause"] or "599 s ahead of ours" in told.fields["cause"]


async def test_open_and_new_connections_go_on_beside_a_stranger_who_floods_hellos():
    """Case 21: before, 256 hellos that offered a finite field of 8192 bits stopped everything for 27 seconds."""
    async with link_to(echo) as link:
        reader, writer = await link.carrying()
        flooding = asyncio.create_task(asyncio.to_thread(flood, "127.0.0.1", link.server.port, 2.0))
        echoes = 0
        while not flooding.done():
            assert await carries(reader, writer, b"y")
            echoes += 1
        _second_reader, second = await link.carrying()
        assert await flooding > 100
        assert echoes > 10
        refused = link.server.counters.refused
        assert refused[Refusal.IDENTITY] + refused[Refusal.CROWD] + refused[Refusal.PEER_UNREACHABLE] > 100
        assert link.server.counters.accepted == 2
        writer.close()
        second.close()


async def test_a_first_flight_may_come_in_pieces():
    flight = sealed_hello()
    async with running_server(UNUSED, timeouts=Timeouts(last_word=0.1)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(flight), 50):
            writer.write(flight[at : at + 50])
            await asyncio.sleep(0.001)
        assert (await reader.read(1)) == b"\x16"
        writer.transport.abort()


async def test_a_drain_ends_first_flights_that_have_not_come():
    async with running_server(UNUSED) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sealed_hello()[:100])
        async with asyncio.timeout(PATIENCE):
            while not server.pending.by_host:
                await asyncio.sleep(0.01)
        await server.drain(0)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(-1) == b""
        assert not server.pending.by_host
        assert not server.counters.refused
        writer.transport.abort()


async def test_case_22_a_hello_that_comes_in_crumbs_is_not_waited_for():
    """Before, 4,095 single bytes took 160 ms of the event loop."""
    flight = sealed_hello()
    async with running_server(UNUSED, timeouts=Timeouts(hello=PATIENCE)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sent = 0
        with contextlib.suppress(ConnectionError):
            for at in range(len(flight) - 1):
                writer.write(flight[at : at + 1])
                await writer.drain()
                sent += 1
                await asyncio.sleep(0.01)
                if reader.at_eof():
                    break
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(-1) == b""
        assert READS_MAX <= sent < len(flight) - 1
        writer.transport.abort()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"], ids=["the peer's", "another"])
async def test_case_23_held_connections_keep_out_no_peer_from_the_same_address(address):
    """Before, 256 idle connections from the peer's own address, as behind a NAT, shut the tunnel."""
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with running_server(target, timeouts=Timeouts(hello=PATIENCE)) as server:
            held = [
                await asyncio.open_connection("127.0.0.1", server.port, local_addr=(address, 0))
                for _ in range(PENDING_OF_ONE_MAX + 50)
            ]
            async with asyncio.timeout(PATIENCE):
                while server.pending.by_host[address] < PENDING_OF_ONE_MAX:
                    await asyncio.sleep(0.01)
            status, channel = await ask_connect(server.port, connect_request(target), address=address)
            assert status == b"HTTP/1.1 200 connected"
            assert server.pending.by_host[address] <= PENDING_OF_ONE_MAX
            channel.reset()
            for _, writer in held:
                writer.transport.abort()


async def test_a_crowd_from_many_addresses_keeps_out_no_peer_whose_address_is_not_known_yet(monkeypatch):
    monkeypatch.setattr(pending_handshakes, "OTHERS_A_SECOND", 1e6)  # a quick machine opens the crowd beyond its rate
    async with target_server(echo) as port:
        target = Target(HOST, port)
        async with running_server(target, timeouts=Timeouts(hello=PATIENCE)) as server:
            held = [
                await asyncio.open_connection("127.0.0.1", server.port, local_addr=(f"127.0.1.{number % 200}", 0))
                for number in range(PENDING_MAX + 50)
            ]
            status, channel = await ask_connect(server.port, connect_request(target), address="127.0.0.9")
            assert status == b"HTTP/1.1 200 connected"
            assert server.pending.expects("127.0.0.9")
            channel.reset()
            for _, writer in held:
                writer.transport.abort()


async def test_a_stranger_who_fills_the_log_does_not_hide_the_peers_lines(caplog):
    async with running_server(UNUSED, peer_addresses=("127.0.0.1",)) as server:
        for _ in range(LINES_A_MINUTE):
            for said in (b"x", b""):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port, local_addr=("127.0.0.2", 0))
                writer.write(said)
                writer.write_eof()
                with contextlib.suppress(ConnectionResetError):
                    await reader.read(-1)
                writer.transport.abort()
        assert await answer_to(server.port, sealed_hello(600)) == b""
    assert any("clock here" in message for message in caplog.messages)
