"""The shim on real sockets: its answers and refusals, and no input ends it."""

import asyncio
import contextlib
import ipaddress
import random
import struct

import pytest
from dnslib import DNSRecord

from appliance.dns import server as server_module
from appliance.dns.binding import bind
from appliance.dns.responder import Outcome
from appliance.dns.server import DnsServer
from appliance.errors import SettingsError
from appliance.settings.target import Target
from appliance.settings.values import DnsSettings
from tests.support.dns import addresses, ask_tcp, ask_udp, query, read_tcp, resolve, send_udp
from tests.support.patience import PATIENCE

ANY_PORT = Target("127.0.0.1", 0)
ADDRESS = ipaddress.IPv4Address("127.64.0.1")


async def maps_orange(host):
    if host == "broken.orange":
        raise RuntimeError("the gateway broke")
    return ADDRESS if host.endswith(".orange") else None


@pytest.fixture
async def shim():
    server = DnsServer(DnsSettings(ANY_PORT, None), maps_orange)
    await server.start()
    yield server
    await server.close()


async def test_a_mapped_name_is_answered_by_udp(shim):
    assert addresses(await resolve(shim.port, "b0.orange")) == ["127.64.0.1"]


async def test_several_queries_on_one_tcp_connection_are_answered_in_their_order(shim):
    replies = await ask_tcp(shim.port, *(query(f"b{index}.orange", identifier=index) for index in range(20)))
    parsed = [DNSRecord.parse(reply) for reply in replies]
    assert [reply.header.id for reply in parsed] == list(range(20))
    assert all(addresses(reply) == ["127.64.0.1"] for reply in parsed)


async def test_questions_are_answered_side_by_side():
    asked, answer_all = [], asyncio.Event()

    async def lookup(host):
        asked.append(host)
        if len(asked) == 200:
            answer_all.set()
        await answer_all.wait()
        return ADDRESS

    server = DnsServer(DnsSettings(ANY_PORT, None), lookup)
    await server.start()
    replies = await asyncio.gather(*(resolve(server.port, f"b{index}.orange") for index in range(200)))
    await server.close()
    assert {str(reply.q.qname) for reply in replies} == {f"b{index}.orange." for index in range(200)}


def malformed(generator):
    """A query that is cut, extended or overwritten, or random bytes."""
    packet = bytearray(query("b0.orange", udp_size=1232))
    for _ in range(generator.randint(1, 6)):
        packet[generator.randrange(len(packet))] = generator.randrange(256)
    cut = packet[: generator.randrange(len(packet))]
    return bytes(generator.choice([packet, cut, packet + generator.randbytes(40), generator.randbytes(90)]))


async def test_ten_thousand_malformed_packets_do_not_end_it(shim):
    generator = random.Random(15060)
    for _ in range(200):
        await send_udp(shim.port, *(malformed(generator) for _ in range(50)))
        assert addresses(await resolve(shim.port, "b0.orange")) == ["127.64.0.1"]


async def test_malformed_tcp_does_not_end_it(shim):
    generator = random.Random(15060)
    for _ in range(200):
        packet = malformed(generator)
        reader, writer = await asyncio.open_connection("127.0.0.1", shim.port)
        writer.write(struct.pack("!H", len(packet)) + packet + generator.randbytes(3))
        writer.write_eof()
        await reader.read()
        writer.close()
    assert addresses(await resolve(shim.port, "b0.orange")) == ["127.64.0.1"]


async def test_a_response_is_never_answered(shim):
    response = await ask_udp(shim.port, query("b0.orange"))
    assert (await ask_udp(shim.port, response, query("b1.orange", identifier=2)))[:2] == b"\x00\x02"
    reader, writer = await asyncio.open_connection("127.0.0.1", shim.port)
    writer.write(struct.pack("!H", len(response)) + response)
    assert await reader.read() == b""
    writer.close()


async def test_an_idle_tcp_connection_is_closed(shim, monkeypatch):
    monkeypatch.setattr(server_module, "IDLE_TIMEOUT", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", shim.port)
    writer.write(b"\x00")
    with contextlib.suppress(ConnectionResetError):  # if the byte has not been read yet
        assert await reader.read() == b""
    writer.close()


async def test_one_tcp_connection_too_many_is_closed_and_the_others_stay(shim, monkeypatch):
    monkeypatch.setattr(server_module, "CONNECTIONS_MAX", 2)
    packet = query("b0.orange")
    kept = [await asyncio.open_connection("127.0.0.1", shim.port) for _ in range(2)]
    reader, writer = await asyncio.open_connection("127.0.0.1", shim.port)
    with pytest.raises((OSError, EOFError)):
        await reader.readexactly(1)
    for kept_reader, kept_writer in kept:
        kept_writer.write(struct.pack("!H", len(packet)) + packet)
        assert addresses(DNSRecord.parse(await read_tcp(kept_reader))) == ["127.64.0.1"]
        kept_writer.close()
    writer.close()


async def test_datagrams_beyond_the_bound_are_dropped_not_queued(monkeypatch):
    monkeypatch.setattr(server_module, "QUERIES_MAX", 1)
    held, release = asyncio.Event(), asyncio.Event()

    async def lookup(_host):
        held.set()
        await release.wait()
        return ADDRESS

    server = DnsServer(DnsSettings(ANY_PORT, None), lookup)
    await server.start()
    first = asyncio.create_task(resolve(server.port, "b0.orange"))
    await held.wait()
    await send_udp(server.port, query("b1.orange"))
    async with asyncio.timeout(PATIENCE):
        while not server.counters[Outcome.DROPPED]:
            await asyncio.sleep(0.01)
    release.set()
    assert addresses(await first) == ["127.64.0.1"]
    assert server.counters == {Outcome.DROPPED: 1, Outcome.MAPPED: 1}
    await server.close()


async def test_closing_drops_what_is_in_flight_and_leaves_no_task():
    asked = asyncio.Event()

    async def lookup(_host):
        asked.set()
        await asyncio.Event().wait()

    server = DnsServer(DnsSettings(ANY_PORT, None), lookup)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await send_udp(server.port, query("b0.orange"))
    await asked.wait()
    await server.close()
    assert await reader.read() == b""
    writer.close()
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("dns")]


async def test_a_closed_port_can_be_taken_again_at_once(shim):
    await resolve(shim.port, "b0.orange")
    await shim.close()
    again = DnsServer(DnsSettings(Target("127.0.0.1", shim.port), None), maps_orange)
    await again.start()
    assert again.port == shim.port
    assert addresses(await resolve(again.port, "b0.orange")) == ["127.64.0.1"]
    await again.close()


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
async def test_a_port_that_another_program_has_is_refused_and_nothing_is_kept(protocol):
    pair = dict(zip(("udp", "tcp"), bind(ANY_PORT), strict=True))
    with pair.pop(protocol) as other:
        for unwanted in pair.values():
            unwanted.close()
        listen = Target("127.0.0.1", other.getsockname()[1])
        server = DnsServer(DnsSettings(listen, None), maps_orange)
        refusal = f"^DNS_LISTEN: cannot listen on {listen}: Address already in use; [^\n]+$"
        with pytest.raises(SettingsError, match=refusal):
            await server.start()
    await server.start()
    await server.close()


async def test_a_loop_is_refused_before_anything_listens(shim):
    itself = Target("127.0.0.1", shim.port)
    await shim.close()
    with pytest.raises(SettingsError, match=r"DNS_UPSTREAM: .* is the shim itself"):
        await DnsServer(DnsSettings(itself, itself), maps_orange).start()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", shim.port)
