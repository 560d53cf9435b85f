"""Queries for the addresses of a host, to a DNS server and to the system."""

import ipaddress

import pytest
from dnslib import RCODE, DNSRecord

from appliance.dns.server import DnsServer
from appliance.dns.stub import StubResolver, system_addresses
from appliance.errors import NameUnresolved, Unreachable
from appliance.settings.target import Target
from appliance.settings.values import DnsSettings
from tests.support.dns import answer, dead_port, losing_the_first, noting, scripted_server, silence, truncated


async def says(code, asked):
    reply = DNSRecord.parse(answer(asked))
    reply.header.rcode = code
    return [reply.pack()]


async def test_the_addresses_come_in_the_servers_order():
    async def script(asked):
        return [answer(asked, "10.0.0.2", "10.0.0.1")]

    async with scripted_server(script) as server:
        assert await StubResolver(server).addresses("B0.Orange.") == ("10.0.0.2", "10.0.0.1")


async def test_the_shim_can_be_asked():
    async def lookup(host):
        return ipaddress.IPv4Address("127.64.0.1") if host == "b0.orange" else None

    shim = DnsServer(DnsSettings(Target("127.0.0.1", 0), None), lookup)
    await shim.start()
    resolver = StubResolver(Target("127.0.0.1", shim.port))
    assert await resolver.addresses("b0.orange") == ("127.64.0.1",)
    with pytest.raises(NameUnresolved, match=rf"127\.0\.0\.1:{shim.port} answers REFUSED for b1\.orange"):
        await resolver.addresses("b1.orange")
    await shim.close()


@pytest.mark.parametrize("host", ["10.0.0.1", "127.0.0.1", "fe80::1"])
async def test_an_ip_literal_is_its_own_address_and_no_server_is_asked(host):
    assert await StubResolver(Target("127.0.0.1", dead_port())).addresses(host) == (host,)
    assert await system_addresses(host) == (host,)


async def test_a_truncated_reply_is_fetched_by_tcp():
    async def whole(asked):
        return [answer(asked, *(f"10.0.0.{index}" for index in range(100)))]

    async with scripted_server(truncated, whole) as server:
        assert len(await StubResolver(server).addresses("b0.orange")) == 100
    async with scripted_server(truncated) as server:
        with pytest.raises(Unreachable):
            await StubResolver(server).addresses("b0.orange")


@pytest.mark.parametrize("code", ["NXDOMAIN", "REFUSED", "SERVFAIL", "NOTIMP"])
async def test_a_refusal_names_the_host_the_server_and_the_answer(code):
    async def script(asked):
        return await says(getattr(RCODE, code), asked)

    async with scripted_server(script) as server:
        with pytest.raises(NameUnresolved, match=f"{server} answers {code} for b0.orange"):
            await StubResolver(server).addresses("b0.orange")


async def test_a_name_without_an_address_is_unresolved():
    async def script(asked):
        return await says(RCODE.NOERROR, asked)

    async with scripted_server(script) as server:
        with pytest.raises(NameUnresolved, match=f"{server} has no IPv4 address for b0.orange"):
            await StubResolver(server).addresses("b0.orange")


@pytest.mark.parametrize("host", ["", "a..b", "a" * 64 + ".orange", "\u00e4.orange"])
async def test_an_illegal_name_is_unresolved_without_asking(host):
    with pytest.raises(NameUnresolved, match="cannot be a name"):
        await StubResolver(Target("127.0.0.1", dead_port())).addresses(host)


async def test_a_broken_reply_is_the_servers_fault_and_no_fault_of_the_name():
    async def script(asked):
        return [answer(asked, "10.0.0.1")[:-1]]

    async with scripted_server(script) as server:
        with pytest.raises(Unreachable, match=r"broken reply for b0\.orange") as failure:
            await StubResolver(server).addresses("b0.orange")
    assert not isinstance(failure.value, NameUnresolved)


async def test_a_lost_datagram_is_asked_for_again():
    async with scripted_server(losing_the_first("10.0.0.1")) as server:
        assert await StubResolver(server, timeouts=(0.05,) * 200).addresses("b0.orange") == ("10.0.0.1",)


async def test_a_silent_server_is_unreachable_after_its_tries():
    asked = []
    async with scripted_server(noting(asked)) as server:
        with pytest.raises(Unreachable, match=f"{server} does not answer within 0.3 s") as failure:
            await StubResolver(server, timeouts=(0.3, 0.3, 0.3)).addresses("b0.orange")
    assert len(asked) == 3
    assert not isinstance(failure.value, NameUnresolved)


async def test_a_dead_server_is_unreachable_at_once():
    server = Target("127.0.0.1", dead_port())
    with pytest.raises(Unreachable, match=f"{server} does not answer: .*refused"):
        await StubResolver(server).addresses("b0.orange")


async def test_the_system_knows_localhost():
    assert "127.0.0.1" in await system_addresses("localhost")


async def test_a_name_that_the_system_cannot_look_up_is_unresolved():
    with pytest.raises(NameUnresolved, match="cannot be a host name"):
        await system_addresses("a" * 64 + ".orange")


async def test_a_server_that_never_answers_by_tcp_is_unreachable(monkeypatch):
    monkeypatch.setattr("appliance.dns.stub.TCP_TIMEOUT", 0.05)
    async with scripted_server(truncated, silence) as server:
        with pytest.raises(Unreachable, match=r"0\.05 s"):
            await StubResolver(server).addresses("b0.orange")
