"""Invented names, queried at real DNS servers, and through a real tunnel."""

import asyncio
import ipaddress
from collections.abc import Callable

import pytest
from dnslib import RCODE, DNSRecord

from appliance.dns.invented import labels, resolved_names
from appliance.dns.stub import StubResolver
from appliance.doctor.step import Verdict
from appliance.doctor.tunnel import TunnelChecks, examine_here, examine_through
from appliance.settings.target import AllowedTargets, Target, TargetPattern
from appliance.settings.values import Side
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.probe import TlsProbe
from deploy.prepare.checks import made_up_name_warnings
from tests.support.dns import answer, scripted_server, silence
from tests.support.tls import identity, running_server
from tests.support.tunnel import HOST, Resolver, echo, target_server, tunnel_settings

BROKER = Target("b0.orange.example", 9092)
PATTERN = TargetPattern("orange.example", 9092)
INTERNAL = TargetPattern("ec2.internal", 9092)
ALLOWED = AllowedTargets((BROKER,), (PATTERN, INTERNAL))
NETWORK = ipaddress.IPv4Network("10.7.0.0/16")

Zone = Callable[[str], str | None]


def ordinary(host: str) -> str | None:
    """A server that knows one broker."""
    return "10.7.0.5" if host == BROKER.host else None


def wildcard(host: str) -> str | None:
    """A server that knows every name below a domain."""
    return "10.7.0.99" if host.endswith(".orange.example") and host != BROKER.host else ordinary(host)


def wildcard_to_the_broker(host: str) -> str | None:
    """A server with one address for every name, like that of a private link's endpoint."""
    return "10.7.0.5" if host.endswith(".orange.example") else None


def follows_addresses(host: str) -> str | None:
    """A server with a name for each address of its network, like a cloud's DNS."""
    label, _, domain = host.partition(".")
    if domain != "ec2.internal" or not label.startswith("ip-"):
        return ordinary(host)
    try:
        address = ipaddress.IPv4Address(label.removeprefix("ip-").replace("-", "."))
    except ValueError:
        return None
    return str(address) if address in NETWORK else None


def served(zone: Zone):
    async def script(query: bytes) -> list[bytes]:
        found = zone(str(DNSRecord.parse(query).q.qname).removesuffix("."))
        if found:
            return [answer(query, found)]
        reply = DNSRecord.parse(query).reply()
        reply.header.rcode = RCODE.NXDOMAIN
        return [reply.pack()]

    return script


@pytest.mark.parametrize(
    ("zone", "pattern", "host"),
    [(wildcard, PATTERN, "nobody-1.orange.example"), (follows_addresses, INTERNAL, "ip-10-7-0-4.ec2.internal")],
)
async def test_an_invented_name_is_found_below_a_pattern(zone: Zone, pattern: TargetPattern, host: str) -> None:
    async with scripted_server(served(zone)) as server:
        (known,) = await resolved_names(ALLOWED, StubResolver(server).addresses, "nobody-1")
    assert (known.pattern, known.host) == (pattern, host)


@pytest.mark.parametrize("zone", [ordinary, wildcard_to_the_broker])
async def test_where_only_the_brokers_are_reached_nothing_is_found(zone: Zone) -> None:
    async with scripted_server(served(zone)) as server:
        assert await resolved_names(ALLOWED, StubResolver(server).addresses, "nobody-1") == ()


async def test_a_resolver_that_is_silent_is_given_up_after_one_name() -> None:
    async with scripted_server(silence) as server:
        assert await resolved_names(ALLOWED, StubResolver(server, (0.01,)).addresses, "nobody-1") == ()


def test_the_names_of_this_machine_are_asked_for_in_both_forms() -> None:
    assert labels("nobody-1", ["10.0.3.7", "fd12::1", "source.example"]) == ("nobody-1", "ip-10-0-3-7", "10-0-3-7")


async def test_prepare_and_the_doctor_name_the_variable_that_bounds_the_pattern() -> None:

    async with scripted_server(served(wildcard)) as server:
        settings = tunnel_settings(allowed=ALLOWED, broker_networks=())
        (line,) = await asyncio.to_thread(made_up_name_warnings, settings, server)
        finding = await examine_here(settings, StubResolver(server).addresses)
        bounded = tunnel_settings(allowed=ALLOWED, broker_networks=(NETWORK,), resolver=server)
        assert await asyncio.to_thread(made_up_name_warnings, bounded, None) == []
        assert (await examine_here(bounded, StubResolver(server).addresses)).verdict is Verdict.PASSED
    for text in (line, f"{finding.detail}: {finding.remedy}"):
        assert (
            ".orange.example was made up just now, and is 10.7.0.99: SOURCE_BROKER_PATTERN=*.orange.example:90" in text
        )
        assert "TUNNEL_BROKER_NETWORKS" in text
    assert finding.verdict is Verdict.WARNING


class Wildcard(Resolver):
    """A resolver that knows every name, at one address."""

    def __init__(self, address: str) -> None:
        super().__init__({})
        self.address = address

    async def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        return [self.address]


@pytest.mark.parametrize(
    ("resolver", "verdict"),
    [
        (Wildcard("127.0.0.1"), Verdict.WARNING),
        (Wildcard("127.99.0.1"), Verdict.WARNING),
        (Wildcard("10.7.0.5"), Verdict.PASSED),
        (Resolver({}), Verdict.PASSED),
    ],
    ids=["a broker answers", "nobody answers", "outside of the networks", "no such name"],
)
async def test_the_destinations_doctor_judges_a_made_up_name_by_the_servers_answer(resolver, verdict):
    async with target_server(echo) as port:
        target = Target(HOST, port)
        allowed = AllowedTargets((target,), (TargetPattern("orange.example", port),))
        async with running_server(target, resolver, allowed=allowed) as server:
            settings = tunnel_settings(port=server.port, allowed=allowed)
            probe = TlsProbe(settings, identity(Side.DESTINATION), Timeouts())
            finding = await examine_through(settings, TunnelChecks(settings, probe, Side.DESTINATION).remote_dial)
            await probe.close()
    assert finding.verdict is verdict
    assert resolver.asked[0].startswith("nobody-")
    assert verdict is Verdict.PASSED or "TUNNEL_BROKER_NETWORKS" in finding.remedy
