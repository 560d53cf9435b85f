"""Three VMs of a total order on one loopback, over real TLS: each has a server, and a gateway to both others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path

import pytest
from dnslib import RCODE

from appliance.gateway.command import run_destination, run_source
from appliance.gateway.watcher import BrokerWatcher
from appliance.settings.order import OrderSettings
from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.target import Target
from tests.support.both_gateways import ReadyLines, page, port_in, running, status_when
from tests.support.dns import addresses, answer, resolve, scripted_server
from tests.support.exposition import samples
from tests.support.gateway import gateway_process
from tests.support.order import ORDER, order
from tests.support.patience import PATIENCE
from tests.support.tunnel import target_server

OWN = {"orange": "127.0.11.1", "grape": "127.0.11.2", "lemon": "127.0.11.3"}
"""The address of the VM beside each cluster."""
NETWORKS = {"orange": "127.64.0.0/12", "grape": "127.80.0.0/12", "lemon": "127.96.0.0/12"}
"""The endpoints of each VM, which has a loopback of its own outside of these tests."""
PREVIOUS = "tKq3sVxG8mJb2nRz5cEa-uYw0loopback"


def host(cluster: str) -> str:
    """The name of a cluster's only broker."""
    return f"b0.{cluster}.example"


@dataclass
class Order:
    """The brokers' ports by their clusters, the port of the tunnels, and the address of the VMs' resolver."""

    brokers: dict[str, int]
    port: int
    resolver: Target
    ready: ReadyLines

    def variables(self, cluster: str) -> dict[str, str]:
        """The variables that the setenv.sh of the VM beside a cluster has beyond ``ORDER``."""
        return {
            "GLOBAL_CLUSTERS": ",".join(f"{name}@{address}" for name, address in OWN.items()),
            "GLOBAL_CLUSTER": cluster,
            **{f"{name.upper()}_BROKER_SERVERS": f"{host(name)}:{port}" for name, port in self.brokers.items()},
            **{f"{name.upper()}_SECURITY_PROTOCOL": "PLAINTEXT" for name in OWN},
            "TUNNEL_PORT": str(self.port),
            "TUNNEL_LISTEN": OWN[cluster],
            "TUNNEL_BROKER_NETWORKS": "127.0.0.0/8",
            "TUNNEL_RESOLVER": str(self.resolver),
            "TUNNEL_STATUS_LISTEN": "127.0.0.1:0",
            "TUNNEL_ENDPOINT_NETWORK": NETWORKS[cluster],
        }

    def settings(self, cluster: str, **changes: str) -> OrderSettings:
        """The settings of that VM."""
        settings = order(TUNNEL_ENDS | Role.REPLICATOR, **self.variables(cluster) | changes)
        return replace(settings, dns=replace(settings.dns, listen=Target("127.0.0.1", 0)))

    @contextlib.asynccontextmanager
    async def server(self, cluster: str, **changes: str) -> AsyncIterator[None]:
        """The tunnel's server beside a cluster."""
        async with running(run_source, self.settings(cluster, **changes), self.ready) as fields:
            assert fields["link"] == "replicator-order"
            yield

    @contextlib.asynccontextmanager
    async def gateway(self, cluster: str, **changes: str) -> AsyncIterator[int]:
        """The gateway beside a cluster; yields the port of its shim."""
        async with running(run_destination, self.settings(cluster, **changes), self.ready) as fields:
            yield port_in(fields["dns"])

    async def ask(self, shim: int, cluster: str) -> str:
        """The answer of a cluster's broker, which a program behind the shim calls by its name and port."""
        (address,) = addresses(await resolve(shim, host(cluster)))
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(address, self.brokers[cluster])
            try:
                writer.write(b"who are you?\n")
                return (await reader.readline()).decode().strip()
            finally:
                writer.close()


def called(name: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """A broker that answers each line by its name."""

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            writer.write(f"{name}\n".encode())

    return tell


@pytest.fixture
async def vms(ready: ReadyLines, unused_tcp_port: int) -> AsyncIterator[Order]:
    """Three clusters with a broker each; no VM runs yet."""

    async def everything_is_here(query: bytes) -> list[bytes]:
        return [answer(query, "127.0.0.1")]

    async with contextlib.AsyncExitStack() as stack:
        brokers = {name: await stack.enter_async_context(target_server(called(name))) for name in OWN}
        resolver = await stack.enter_async_context(scripted_server(everything_is_here))
        yield Order(brokers, unused_tcp_port, resolver, ready)


async def test_each_vm_reaches_the_brokers_of_both_other_clusters_by_their_names(vms: Order) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for name in OWN:
            await stack.enter_async_context(vms.server(name))
        shims = {name: await stack.enter_async_context(vms.gateway(name)) for name in OWN}
        for name, shim in shims.items():
            for other in OWN.keys() - {name}:
                assert await vms.ask(shim, other) == other
            assert (await resolve(shim, host(name))).header.rcode == RCODE.REFUSED


async def test_each_clusters_brokers_have_addresses_of_a_range_of_their_own(vms: Order) -> None:
    async with vms.gateway("grape") as shim:
        for link in vms.settings("grape").links:
            (address,) = addresses(await resolve(shim, host(link.source.cluster_id)))
            assert ip_address(address) in link.tunnel.endpoint_network


async def test_a_vm_that_is_down_disturbs_no_other_and_is_reached_when_it_is_back(
    vms: Order, caplog: pytest.LogCaptureFixture
) -> None:
    async with vms.server("orange"), vms.gateway("grape") as shim:
        with pytest.raises((ConnectionError, TimeoutError)):
            assert await vms.ask(shim, "lemon")
        assert await vms.ask(shim, "orange") == "orange"
        document = await status_when(
            caplog, 1, lambda both: both["clusters"]["lemon"]["near"]["server"]["reached"] is False
        )
        assert document["clusters"]["orange"]["near"]["server"]["reached"]
        health = await page(caplog, 1, "/health")
        assert '"lemon: the tunnel server was not reached at the last attempt' in health
        assert '"orange: the tunnel server' not in health
        async with vms.server("lemon"):
            async with asyncio.timeout(PATIENCE):
                while True:
                    with contextlib.suppress(ConnectionError):
                        if await vms.ask(shim, "lemon") == "lemon":
                            break
                    await asyncio.sleep(0.05)
            assert await vms.ask(shim, "orange") == "orange"


async def test_the_metrics_of_each_way_have_its_clusters_id(vms: Order, caplog: pytest.LogCaptureFixture) -> None:
    async with vms.server("orange"), vms.gateway("grape") as shim:
        assert await vms.ask(shim, "orange") == "orange"
        found = samples(await page(caplog, 1, "/metrics"))
    assert found["server_reachable", "orange"] == 1
    assert found["connections_open", "lemon"] >= 0
    assert found["bytes_total", "orange", "from_target"] > 0
    assert found["bytes_total", "lemon", "from_target"] == 0
    assert found["dns_queries_total", "mapped"] == 1
    assert len([key for key in found if key[0] == "build_info"]) == 1


async def test_a_server_refuses_a_vm_with_another_secret_and_a_target_that_is_not_its_own(vms: Order) -> None:
    async with vms.server("orange"), vms.gateway("grape", SHARED_SECRET=PREVIOUS) as shim:
        with pytest.raises(ConnectionError):
            assert await vms.ask(shim, "orange")
    swapped = {"GLOBAL_CLUSTERS": f"orange@{OWN['lemon']},grape@{OWN['grape']},lemon@{OWN['orange']}"}
    async with vms.server("orange"), vms.gateway("grape", **swapped) as shim:
        with pytest.raises(ConnectionError):
            assert await vms.ask(shim, "lemon")


async def test_while_the_secret_is_changed_vm_by_vm_each_server_is_reached_with_the_one_that_it_has(vms: Order) -> None:
    changing = {"SHARED_SECRET_PREVIOUS": PREVIOUS}
    async with (
        vms.server("orange", SHARED_SECRET=PREVIOUS),
        vms.server("lemon"),
        vms.gateway("grape", **changing) as shim,
    ):
        for name in ("lemon", "orange", "lemon", "orange"):
            async with asyncio.timeout(PATIENCE):
                while True:
                    with contextlib.suppress(ConnectionError):
                        if await vms.ask(shim, name) == name:
                            break
                    await asyncio.sleep(0.05)


async def test_the_brokers_of_each_cluster_are_polled_by_its_own_way(
    vms: Order, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    poll = BrokerWatcher.poll

    async def noted(self: BrokerWatcher) -> bool:
        asked.add(self._cluster.side)
        return await poll(self)

    monkeypatch.setattr(BrokerWatcher, "poll", noted)
    async with vms.server("orange"), vms.gateway("grape"):
        both = await status_when(
            caplog, 1, lambda both: all(each["near"]["brokers"]["fault"] for each in both["clusters"].values())
        )
    assert asked == {"orange", "lemon"}
    assert both["clusters"]["lemon"]["near"]["brokers"]["fault"] == "unreachable"
    assert "no broker of the lemon cluster answers" in both["clusters"]["lemon"]["near"]["brokers"]["cause"]


async def test_the_two_commands_of_a_link_serve_an_order_that_their_file_describes(
    vms: Order, tmp_path: Path, unused_tcp_port_factory: Callable[[], int]
) -> None:
    shim = unused_tcp_port_factory()
    async with contextlib.AsyncExitStack() as stack:
        for name in ("orange", "lemon"):
            await stack.enter_async_context(gateway_process("source", ORDER | vms.variables(name), tmp_path))
        own = ORDER | vms.variables("grape") | {"DNS_LISTEN": f"127.0.0.1:{shim}"}
        process = await stack.enter_async_context(gateway_process("destination", own, tmp_path))
        await process.wait_for_line("files confined", PATIENCE)
        assert [await vms.ask(shim, name) for name in ("orange", "lemon")] == ["orange", "lemon"]
