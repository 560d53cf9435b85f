"""The source brokers that are dialled: through a tunnel none but those that the settings allow, at their endpoints."""

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import pytest

from appliance.dns.binding import AddressBook
from appliance.dns.server import DnsServer
from appliance.errors import BrokerNotAllowed, NameUnresolved, Unreachable
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.source_tunnel import gateways_cluster
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.dial import connect
from appliance.link.client.clusters import source_cluster
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE
from appliance.settings.target import Target
from appliance.settings.values import DnsSettings, Settings
from bench.lib.running import free_port
from tests.support.engine import as_it_is
from tests.support.patience import PATIENCE
from tests.support.scripted_broker import scripted_broker
from tests.support.settings import REQUIRED

NAME, OTHER, NEIGHBOUR = "b0.orange.example", "b1.orange.example", "neighbour.home.example"
NETWORK = ipaddress.IPv4Network("127.64.0.0/10")
AT = str(AddressBook(NETWORK).address_of(NAME))
"""The address of the broker's endpoint."""

_QUESTIONS = 60
"""Enough that each broker in the metadata is a candidate for one."""


async def lookup(host: str) -> ipaddress.IPv4Address | None:
    """Our broker's endpoint; other names as a resolver beyond the shim, or one in its place, may answer them."""
    return ipaddress.IPv4Address(AT if host == NAME else "127.0.0.1")


@contextlib.asynccontextmanager
async def trap(address: str) -> AsyncIterator[tuple[int, list[object]]]:
    """A neighbour's port, and the connections that it has got."""
    met: list[object] = []

    def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(writer.get_extra_info("peername"))
        writer.close()

    async with await asyncio.start_server(serve, address, 0) as server:
        yield server.sockets[0].getsockname()[1], met


class NoTunnel:
    """A tunnel client that opens no endpoint: the broker stands there itself."""

    async def open_endpoint(self, target: Target, address: str, port: int) -> int:
        assert (target.host, address) == (NAME, AT)
        return port


def by_shim(settings: Settings) -> KafkaCluster:
    return source_cluster(settings)


def by_gateway(settings: Settings) -> KafkaCluster:
    client = cast("Any", NoTunnel())
    return gateways_cluster(settings, Endpoints(settings.tunnel.allowed, AddressBook(NETWORK), client))


@contextlib.asynccontextmanager
async def settings_of(port: int, **more: str) -> AsyncIterator[Settings]:
    """The settings of a link whose broker is at this port, with a shim."""
    shim = DnsServer(DnsSettings(Target("127.0.0.1", 0), None), lookup)
    await shim.start()
    try:
        own = {"SOURCE_BROKER_SERVERS": f"{NAME}:{port}", "SOURCE_SECURITY_PROTOCOL": "PLAINTEXT"}
        yield parse({**REQUIRED, **own, "DNS_LISTEN": f"127.0.0.1:{shim.port}", **more}, EVERY_ROLE)
    finally:
        await shim.close()


@contextlib.asynccontextmanager
async def broker(listed: Sequence[Target]) -> AsyncIterator[int]:
    """Our broker, which lists itself and these; its port."""
    port = free_port(AT)
    async with asyncio.timeout(PATIENCE), scripted_broker(AT, port, [Target(NAME, port), *listed], newest=13):
        yield port


@pytest.mark.parametrize("way", [by_shim, by_gateway])
async def test_case_970_metadata_of_the_source_leads_to_no_host_that_the_settings_do_not_allow(
    way: Callable[[Settings], KafkaCluster],
) -> None:
    # Before, replicator, status, console and commands dialled whatever the source's metadata named, with the API key.
    async with trap("127.0.0.1") as (port, met), trap("::1") as (port_6, met_6), trap(AT) as (other_port, met_there):
        strange = [Target("127.0.0.1", port), Target("::1", port_6), Target(NEIGHBOUR, port), Target(NAME, other_port)]
        async with broker(strange) as at, settings_of(at) as settings, way(settings) as source:
            for _ in range(_QUESTIONS):
                assert list((await source.metadata([])).brokers.values())[1:] == strange
            for node, target in enumerate(strange, start=1):
                with pytest.raises(BrokerNotAllowed, match=r"SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN$") as refused:
                    await source.broker(node)
                assert str(refused.value).startswith(f"{target}: ")
            assert (await source.broker(0)).open
    assert [met, met_6, met_there] == [[], [], []]


async def test_an_allowed_name_that_leads_past_its_endpoint_is_not_dialled() -> None:
    async with trap("127.0.0.1") as (port, met), broker([Target(OTHER, port)]) as at:
        servers = f"{NAME}:{at},{OTHER}:{port}"
        async with settings_of(at, SOURCE_BROKER_SERVERS=servers) as settings, source_cluster(settings) as source:
            await source.metadata([])
            with pytest.raises(NameUnresolved, match=r"resolves to 127\.0\.0\.1, outside of TUNNEL_ENDPOINT_NETWORK"):
                await source.broker(1)
    assert met == []


async def test_without_a_tunnel_brokers_are_dialled_where_metadata_has_them() -> None:
    async with (
        trap("127.0.0.1") as (port, met),
        broker([Target("127.0.0.1", port)]) as at,
        settings_of(at, SOURCE_ROUTE="direct", SOURCE_BROKER_SERVERS=f"{AT}:{at}") as settings,
        source_cluster(settings) as source,
    ):
        await source.metadata([])
        with pytest.raises(Unreachable, match="closed the connection"):
            await source.broker(1)
    assert len(met) == 1


@pytest.mark.parametrize("target", [Target("127.0.0.1", 70_000), Target("127.0.0.1", -1), Target("a\0b", 9092)])
async def test_case_971_a_broker_that_nobody_can_dial_is_unreachable(target: Target) -> None:
    # Before, port 70000 in the metadata raised OverflowError, and a name with a zero byte ValueError.
    with pytest.raises(Unreachable, match=str(target)):
        await connect(target, as_it_is, "test", None)
