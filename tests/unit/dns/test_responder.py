import asyncio
import ipaddress

import pytest
from dnslib import RCODE, DNSRecord

from appliance.dns import responder as responder_module
from appliance.dns.exchange import Upstream
from appliance.dns.responder import Outcome, Responder
from appliance.errors import NameUnresolved
from appliance.settings.target import Target
from tests.support.dns import addresses, query

ADDRESS = ipaddress.IPv4Address("127.64.0.1")


async def maps_orange(host):
    return ADDRESS if host.endswith(".orange") else None


async def fails(_host):
    raise RuntimeError("the gateway broke")


async def hangs(_host):
    await asyncio.Event().wait()


async def reply_of(lookup, message, by_tcp=False):
    return DNSRecord.parse(await Responder(lookup, None).reply_to(message, by_tcp))


async def test_a_mapped_name_is_answered():
    assert addresses(await reply_of(maps_orange, query("B0.Orange"))) == ["127.64.0.1"]


async def test_a_name_that_is_not_ours_is_refused_without_an_upstream():
    assert (await reply_of(maps_orange, query("b0.grape"))).header.rcode == RCODE.REFUSED


@pytest.mark.parametrize("message", [b"", b"short", query("b0.orange")[:20], query("b0.orange", "AXFR")])
async def test_nothing_is_looked_up_for_a_query_that_is_dismissed(message):
    asked = []
    await Responder(asked.append, None).reply_to(message, by_tcp=False)
    assert asked == []


async def test_a_failing_lookup_costs_that_question_only_and_is_logged(caplog):
    assert (await reply_of(fails, query("b0.orange"))).header.rcode == RCODE.SERVFAIL
    assert "the gateway broke" in caplog.text


async def test_a_name_that_is_ours_and_has_no_address_is_answered_by_a_failure_and_not_forwarded(caplog):
    async def full(host):
        raise NameUnresolved(f"{host} is one too many")

    responder = Responder(full, Upstream(Target("192.0.2.1", 53)))
    reply = DNSRecord.parse(await responder.reply_to(query("b9.orange"), by_tcp=False))
    assert reply.header.rcode == RCODE.SERVFAIL
    assert responder.counters == {Outcome.SERVFAIL: 1}
    assert caplog.text == ""


async def test_a_lookup_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(responder_module, "LOOKUP_TIMEOUT", 0.01)
    assert (await reply_of(hangs, query("b0.orange"))).header.rcode == RCODE.SERVFAIL


async def test_every_query_is_counted_by_its_outcome():
    async def looks_up(host):
        return await (fails(host) if host == "broken" else maps_orange(host))

    responder = Responder(looks_up, None)
    for message in (query("b0.orange"), query("b1.orange", "AAAA"), query("b0.grape"), query("broken"), b"short"):
        await responder.reply_to(message, by_tcp=False)
    assert responder.counters == {Outcome.MAPPED: 2, Outcome.REFUSED: 1, Outcome.SERVFAIL: 1, Outcome.MALFORMED: 1}
