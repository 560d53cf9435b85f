"""Other names are forwarded to upstreams that are right, slow, silent, dead or lying."""

import asyncio
import contextlib
import ipaddress
import socket

from dnslib import RCODE, DNSRecord

from appliance.dns import exchange
from appliance.dns.exchange import Upstream
from appliance.dns.messages.answers import decode
from appliance.dns.responder import Outcome
from appliance.dns.server import DnsServer
from appliance.settings.target import Target
from appliance.settings.values import DnsSettings
from tests.support.dns import (
    addresses,
    answer,
    ask_tcp,
    dead_port,
    losing_the_first,
    noting,
    query,
    resolve,
    scripted_server,
    silence,
    truncated,
)

OURS = ipaddress.IPv4Address("127.64.0.1")
THEIRS = ipaddress.IPv4Address("127.64.0.2")


def maps(domain, address):
    async def lookup(host):
        return address if host.endswith(domain) else None

    return lookup


@contextlib.asynccontextmanager
async def running_shim(upstream, domain=".orange", address=OURS, port=0):
    server = DnsServer(DnsSettings(Target("127.0.0.1", port), upstream), maps(domain, address))
    await server.start()
    try:
        yield server
    finally:
        await server.close()


class Witness(asyncio.DatagramProtocol):
    """An upstream that answers everything, and notes ids and source ports; a stranger may answer first."""

    def __init__(self, forged):
        self.forged = forged
        self.seen = []

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, sender):
        self.seen.append((data[:2], sender[1]))
        if self.forged:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.sendto(answer(data, self.forged), sender)
        self.transport.sendto(answer(data, "10.0.0.1"), sender)


@contextlib.asynccontextmanager
async def witnessing_upstream(forged=None):
    loop = asyncio.get_running_loop()
    transport, witness = await loop.create_datagram_endpoint(lambda: Witness(forged), local_addr=("127.0.0.1", 0))
    yield Target(*transport.get_extra_info("sockname")), witness.seen
    transport.close()


async def test_a_name_that_is_not_ours_is_answered_by_the_upstream():
    async with running_shim(None, ".grape", THEIRS) as other, running_shim(Target("127.0.0.1", other.port)) as shim:
        reply = await resolve(shim.port, "b0.gRaPe")
        assert (reply.header.id, str(reply.q.qname), addresses(reply)) == (4711, "b0.gRaPe.", ["127.64.0.2"])
        assert addresses(await resolve(shim.port, "b0.orange")) == ["127.64.0.1"]
        assert (await resolve(shim.port, "b0.apple")).header.rcode == RCODE.REFUSED
        assert shim.counters == {Outcome.FORWARDED: 2, Outcome.MAPPED: 1}


async def test_a_client_by_tcp_is_forwarded_by_tcp():
    by_tcp = []

    async def script(asked):
        by_tcp.append(asked)
        return [answer(asked, *(f"10.0.0.{index}" for index in range(200)))]

    async with scripted_server(silence, script) as upstream, running_shim(upstream) as shim:
        (reply,) = await ask_tcp(shim.port, query("b0.grape", identifier=9))
    assert (DNSRecord.parse(reply).header.id, len(addresses(DNSRecord.parse(reply)))) == (9, 200)
    assert len(by_tcp) == 1


async def test_a_truncated_reply_is_handed_on_so_that_the_client_comes_by_tcp():
    async with scripted_server(truncated) as upstream, running_shim(upstream) as shim:
        assert (await resolve(shim.port, "b0.grape")).header.tc == 1


async def test_a_reply_larger_than_the_client_takes_is_truncated():
    async def large(asked):
        return [answer(asked, *(f"10.0.0.{index}" for index in range(60)))]

    async with scripted_server(large) as upstream, running_shim(upstream) as shim:
        assert (await resolve(shim.port, "b0.grape")).header.tc == 1
        assert len(addresses(await resolve(shim.port, "b0.grape", udp_size=1232))) == 60


async def test_ids_and_source_ports_cannot_be_guessed():
    async with witnessing_upstream() as (upstream, seen), running_shim(upstream) as shim:
        for _ in range(20):
            assert (await resolve(shim.port, "b0.grape")).header.id == 4711
    identifiers, ports = zip(*seen, strict=True)
    assert len(set(identifiers)) > 15
    assert len(set(ports)) > 15


async def test_replies_with_a_wrong_id_or_question_are_ignored_until_the_right_one_comes():
    async def lying(asked):
        other_id = bytes([asked[0] ^ 1]) + asked[1:]
        other_name = asked[:2] + query("b1.grape")[2:]
        lies = [answer(other_id, "10.6.6.6"), answer(other_name, "10.6.6.6")]
        return [b"", b"noise", asked, *lies, answer(asked, "10.0.0.1")]

    async with scripted_server(lying, lying) as upstream, running_shim(upstream) as shim:
        assert addresses(await resolve(shim.port, "b0.grape")) == ["10.0.0.1"]
        (reply,) = await ask_tcp(shim.port, query("b0.grape"))
        assert addresses(DNSRecord.parse(reply)) == ["10.0.0.1"]


async def test_a_right_reply_from_another_socket_is_ignored():
    async with witnessing_upstream(forged="10.6.6.6") as (upstream, seen), running_shim(upstream) as shim:
        assert addresses(await resolve(shim.port, "b0.grape")) == ["10.0.0.1"]
    assert len(seen) == 1


async def test_an_upstream_that_only_lies_is_an_upstream_that_does_not_answer():
    async def lying(asked):
        return [answer(query("b0.grape", identifier=1), "10.6.6.6"), answer(asked[:2] + query("b1.grape")[2:])]

    async with scripted_server(lying) as server:
        reply = await Upstream(server, timeouts=(0.1,)).forward(decode(query("b0.grape")), by_tcp=False)
    assert DNSRecord.parse(reply).header.rcode == RCODE.SERVFAIL


async def test_a_silent_upstream_is_asked_again_then_given_up():
    by_udp, by_tcp = [], []
    async with scripted_server(noting(by_udp), noting(by_tcp)) as server:
        upstream = Upstream(server, timeouts=(0.5, 0.5))
        for tcp in (False, True):
            reply = DNSRecord.parse(await upstream.forward(decode(query("b0.grape", identifier=6)), tcp))
            assert (reply.header.id, reply.header.rcode) == (6, RCODE.SERVFAIL)
    assert (len(by_udp), len(by_tcp)) == (2, 1)


async def test_a_lost_datagram_is_asked_for_again():
    async with scripted_server(losing_the_first("10.0.0.1")) as server:
        reply = await Upstream(server, timeouts=(0.05,) * 200).forward(decode(query("b0.grape")), by_tcp=False)
    assert addresses(DNSRecord.parse(reply)) == ["10.0.0.1"]


async def test_a_dead_upstream_is_reported_at_once_by_udp_and_tcp():
    # A silent upstream would take this time by UDP, and the same again by TCP.
    async with running_shim(Target("127.0.0.1", dead_port())) as shim, asyncio.timeout(sum(exchange.TIMEOUTS)):
        assert (await resolve(shim.port, "b0.grape")).header.rcode == RCODE.SERVFAIL
        (reply,) = await ask_tcp(shim.port, query("b0.grape"))
        assert DNSRecord.parse(reply).header.rcode == RCODE.SERVFAIL
        assert shim.counters == {Outcome.SERVFAIL: 2}


async def test_a_slow_upstream_delays_its_own_names_only():
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(message):
        asked.set()
        await go_on.wait()
        return [answer(message, "10.0.0.1")]

    async with scripted_server(slow) as upstream, running_shim(upstream) as shim:
        waiting = asyncio.create_task(resolve(shim.port, "b0.grape"))
        await asked.wait()
        assert addresses(await resolve(shim.port, "b0.orange")) == ["127.64.0.1"]
        assert not waiting.done()
        go_on.set()
        assert addresses(await waiting) == ["10.0.0.1"]


async def test_forwards_in_flight_are_bounded(monkeypatch):
    monkeypatch.setattr(exchange, "FORWARDS_MAX", 3)
    async with scripted_server(silence) as upstream, running_shim(upstream) as shim:
        waiting = [asyncio.create_task(resolve(shim.port, f"b{index}.grape")) for index in range(4)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result().header.rcode for task in done] == [RCODE.SERVFAIL]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_loop_through_another_server_ends():
    async with running_shim(None) as gone:
        pass
    upstream = Target("127.0.0.1", gone.port)
    async with running_shim(upstream) as shim, running_shim(Target("127.0.0.1", shim.port), port=gone.port):
        assert (await resolve(shim.port, "b0.apple")).header.rcode == RCODE.SERVFAIL
        assert addresses(await resolve(shim.port, "b0.orange")) == ["127.64.0.1"]
