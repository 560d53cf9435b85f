"""Brokers that join, move and stay outside, as both ends of the tunnel show it: real brokers, real processes."""

import asyncio
import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any

import pytest
import pytest_asyncio

from appliance.dns.server import DnsServer
from appliance.dns.stub import StubResolver
from appliance.errors import Unreachable
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.dial import Resolve
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, DnsSettings, SaslMechanism, SecurityProtocol, Side
from bench.lib.running import OWN_ADDRESS, free_port
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from testbed.process import OwnedProcess
from tests.support.exposition import Samples, samples
from tests.support.guest import Guest, free_port_pair
from tests.support.link import ORANGE_KEY, Link, lines
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOMAIN = "orange.vpc.example"
PLAN = ClusterPlan(
    "orange", (Node(0, "127.0.6.1", f"b0.{DOMAIN}"),), SecurityProtocol.SASL_PLAINTEXT, api_keys=(ORANGE_KEY,)
)
NAMES = {f"b0.{DOMAIN}": "127.0.6.1", f"b2.{DOMAIN}": "127.0.6.3"}
GUEST_ADDRESS = "127.0.6.2"
"""The address of every other name, so that the guest may have any name."""


@dataclass(slots=True)
class Network:
    """A cluster of one broker, two guests that may join it, and the tunnel to it."""

    link: Link
    guest: Guest
    outsider: Guest
    guest_ports: tuple[int, int]
    _ends: dict[str, OwnedProcess] = field(default_factory=dict)

    @property
    def source(self) -> OwnedProcess:
        """The tunnel's source end."""
        return self._ends["source"]

    @property
    def destination(self) -> OwnedProcess:
        """The tunnel's destination end."""
        return self._ends["destination"]

    def changed(self) -> dict[str, str]:
        """The additional settings of a link to this cluster."""
        first, last = self.guest_ports
        return {
            "SOURCE_SECURITY_PROTOCOL": PLAN.security.value,
            "SOURCE_CA_FILE": "",
            # The second broker does not exist yet; it stands for brokers on such ports.
            "SOURCE_BROKER_SERVERS": f"{self.seed},b9.{DOMAIN}:{first}",
            "SOURCE_BROKER_PATTERN": f"*.{DOMAIN}:{first}-{last}",
        }

    async def start(self) -> None:
        """Start both ends, and wait until they are ready."""
        for command in ("source", "destination"):
            await self.start_again(command)
        for process in self._ends.values():
            await process.wait_for_line("ready", PATIENCE)

    async def start_again(self, command: str) -> None:
        """Start an end of the tunnel in place of the killed one."""
        self._ends[command] = await self.link.start(command, **self.changed())

    async def close(self) -> None:
        """End all processes that were started here."""
        for end in self._ends.values():
            await end.kill()
        for guest in (self.guest, self.outsider):
            await guest.kill()

    async def told_by(self, target: Target, resolve: Resolve) -> dict[int, Target]:
        """The brokers that a broker lists to a client that knows only the broker's name and port."""
        access = ClusterSettings(
            side=Side.SOURCE,
            cluster_id="orange",
            bootstrap=(target,),
            protocol=PLAN.security,
            mechanism=SaslMechanism.PLAIN,
            api_key=ORANGE_KEY.key,
            api_secret=ORANGE_KEY.secret,
            ca_file=None,
        )
        async with KafkaCluster(access, resolve, "test") as kafka:
            return dict((await kafka.metadata([])).brokers)

    async def through_the_shim(self, target: Target) -> dict[int, Target]:
        """The brokers that a broker lists to a client on the destination VM."""
        return await self.told_by(target, StubResolver(Target.parse(self.link.shim)).addresses)

    async def until_told(self, target: Target, expected: dict[int, Target]) -> None:
        """Wait until the broker lists these brokers; it learns of the others, and of its own admission, after a
        while."""
        async with asyncio.timeout(PATIENCE):
            while await self.through_the_shim(target) != expected:
                await asyncio.sleep(0.1)

    async def until_open(self, target: Target) -> None:
        """Wait until the endpoint of a broker is open, although no client has queried its name."""
        await self.destination.wait_for_line(f"endpoint open target={target} ", PATIENCE)

    @property
    def seed(self) -> Target:
        """The only broker that the settings name."""
        return self.link.orange.vpc_targets[0]


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def page(process: OwnedProcess, path: str) -> tuple[int, str]:
    """The text of a status page of an end of the tunnel."""
    address = await process.wait_for_address("status listening", PATIENCE)
    return await asyncio.to_thread(_get, f"http://{address}{path}")


async def until_health(process: OwnedProcess, status: int, *words: str) -> dict[str, Any]:
    """Ask an end for its health until it answers with this status, and its text has these words."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found, body = await page(process, "/health")
            if found == status and all(word in body for word in words):
                answer: dict[str, Any] = json.loads(body)
                return answer
            await asyncio.sleep(0.1)


async def metrics(process: OwnedProcess) -> Samples:
    """The metrics of an end."""
    status, body = await page(process, "/metrics")
    assert status == 200
    return samples(body)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def network(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Network]:
    directory = tmp_path_factory.mktemp("brokers")

    async def lookup(host: str) -> IPv4Address | None:
        return IPv4Address(NAMES.get(host, GUEST_ADDRESS))

    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(Cluster(PLAN, directory))
        vpc_dns = DnsServer(DnsSettings(Target("127.0.0.1", 0), None), lookup)
        await vpc_dns.start()
        stack.push_async_callback(vpc_dns.close)
        guest, outsider = Guest(cluster, 1, GUEST_ADDRESS), Guest(cluster, 2, NAMES[f"b2.{DOMAIN}"])
        made = Network(Link(cluster, cluster, vpc_dns, directory), guest, outsider, free_port_pair(GUEST_ADDRESS))
        stack.push_async_callback(made.close)
        await made.start()
        yield made


async def test_both_ends_show_that_they_are_well_and_what_they_have_carried(network: Network) -> None:
    answer = await until_health(network.destination, 200)
    assert answer["brokers"]["open"] == [str(network.seed)]
    assert answer["tunnel"]["server_reached"] is True
    status, body = await page(network.source, "/health")
    assert (status, json.loads(body)["troubles"]) == (200, [])
    ends = (network.destination, network.source)
    before = [await metrics(end) for end in ends]
    for _ in range(5):
        assert await network.through_the_shim(network.seed) == {0: network.seed}
    after = [await metrics(end) for end in ends]
    for old, new in zip(before, after, strict=True):
        assert new["connections_accepted_total",] == old["connections_accepted_total",] + 5
        assert new["handshake_seconds_count",] == old["handshake_seconds_count",] + 5
        assert new["bytes_total", "to_target"] > old["bytes_total", "to_target"]
        assert {key: new[key] for key in new if key[0] == "connections_refused_total"}.items() <= old.items()
    assert after[0]["dns_queries_total", "mapped"] == before[0]["dns_queries_total", "mapped"] + 5
    assert after[0]["brokers", "open"] == after[0]["server_reachable",] == after[0]["metadata_known",] == 1


async def test_a_key_that_the_cluster_refuses_is_told_apart_from_a_tunnel_that_is_away_and_both_pass(
    network: Network,
) -> None:
    shim = f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}"
    wrong = {"SOURCE_API_SECRET": "wrong", "DNS_LISTEN": shim, "TUNNEL_ENDPOINT_NETWORK": "127.32.0.0/16"}
    async with network.link.running("destination", **(network.changed() | wrong)) as stranger:
        answer = await until_health(stranger, 503, "credentials")
        assert answer["brokers"]["fault"] == "credentials"
        assert any("SOURCE_API_KEY=ORANGE: check it and SOURCE_API_SECRET" in trouble for trouble in answer["troubles"])
        resolve = StubResolver(Target.parse(shim)).addresses
        assert await network.told_by(network.seed, resolve) == {0: network.seed}
        await network.source.kill()
        answer = await until_health(network.destination, 503, "unreachable")
        assert answer["tunnel"]["server_reached"] is False
        await network.start_again("source")
        await until_health(network.destination, 200)


async def test_a_broker_that_joins_or_moves_is_reached_within_seconds_and_one_outside_is_refused_and_shown(
    network: Network,
) -> None:
    guest, destination = network.guest, network.destination
    joined = Target(f"b1.{DOMAIN}", network.guest_ports[0])
    moved = Target(f"b7.eu.{DOMAIN}", network.guest_ports[1])
    outside = Target(f"b2.{DOMAIN}", free_port_pair(network.outsider.address)[0])
    await asyncio.gather(guest.start(joined), network.outsider.start(outside))
    await network.until_open(joined)  # after 3 seconds at most: tests/unit/gateway/test_watcher.py
    await network.until_told(joined, {0: network.seed, 1: joined, 2: outside})

    await guest.move(moved)
    await network.until_open(moved)
    await network.until_told(moved, {0: network.seed, 1: moved, 2: outside})

    line = await destination.wait_for_line("source broker refused", PATIENCE)
    assert f"broker={outside} " in line
    assert "SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN" in line
    answer = await until_health(network.destination, 503, f"broker {outside} is refused")
    assert answer["brokers"]["open"] == [str(network.seed), str(moved)]
    assert answer["brokers"]["refused"] == [str(outside)]
    found = await metrics(destination)
    assert found["broker", str(outside), "refused"] == found["brokers", "refused"] == 1
    assert found["broker", str(moved), "open"] == 1
    with pytest.raises(Unreachable):
        await network.through_the_shim(outside)
    assert sum("source broker refused" in line for line in lines(destination)) == 1
