"""Clusters with one order: a process beside each, which reaches the others by a line of its own that may be cut."""

import asyncio
import contextlib
import dataclasses
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import NewTopic
from dnslib import DNSRecord

from appliance.settings.env_file import read_order
from appliance.settings.role import Role
from appliance.settings.target import Target
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from testbed.process import OwnedProcess
from tests.conftest import plain
from tests.faults.proxy import Proxy
from tests.support.administration import make_topic, topics
from tests.support.dns import Script, answer, scripted_server
from tests.support.order_chains import Chains, followed
from tests.support.order_writers import OrderWriter
from tests.support.patience import PATIENCE
from tests.support.releases import Release
from tests.support.settings import SECRET, write_settings

NAMES = ("orange", "grape", "lemon", "melon", "peach")
LANES = 2


def plans(count: int) -> list[ClusterPlan]:
    """So many clusters of one broker, which has a name for the other clusters' processes."""
    return [
        dataclasses.replace(plain(name, f"127.0.3.{41 + number}"), nodes=(_node(name, f"127.0.3.{41 + number}"),))
        for number, name in enumerate(NAMES[:count])
    ]


def _node(name: str, address: str) -> Node:
    return Node(0, address, fqdn=f"b0.{name}.vpc.example")


@dataclasses.dataclass
class Ordered:
    """The clusters; ``lines`` lead from each process to each cluster, and ``shims`` resolve names of others' brokers.

    The line to the own cluster has its bootstrap alone, because settings with tunnels take only names.
    """

    clusters: Mapping[str, Cluster]
    directory: Path
    lines: dict[tuple[str, str], Proxy] = dataclasses.field(default_factory=dict)
    shims: dict[str, Target] = dataclasses.field(default_factory=dict)

    def settings(self, own: str, **changed: str) -> Path:
        """A setenv.sh beside one cluster, of the order of all topics that are called orders-something."""
        variables = {
            "GLOBAL_CLUSTERS": ",".join(f"{name}@127.0.0.{number}" for number, name in enumerate(self.clusters, 11)),
            "GLOBAL_CLUSTER": own,
            "GLOBAL_HOME": next(iter(self.clusters)),
            "GLOBAL_TOPICS_REGEX": "orders-.*",
            "SHARED_SECRET": SECRET,
            "DNS_LISTEN": str(self.shims.get(own, "127.0.0.1:5300")),
            "LANES": str(LANES),
            "DISCOVERY_SECONDS": "0.5",
            "CONSOLE_LISTEN": f"127.0.0.{21 + [*self.clusters].index(own)}:8088",
        }
        for name, cluster in self.clusters.items():
            brokers = [self.lines[own, own].listen] if name == own else cluster.vpc_targets
            variables[f"{name.upper()}_BROKER_SERVERS"] = ",".join(map(str, brokers)).replace("127.0.0.1", "localhost")
            variables[f"{name.upper()}_SECURITY_PROTOCOL"] = "PLAINTEXT"
        return write_settings(self.directory / f"{own}.sh", variables | changed)

    async def process(self, own: str, release: Release | None = None, vm: int = 1, **changed: str) -> OwnedProcess:
        """The process beside one cluster, on one of the VMs there; with ``release`` that release's."""
        program = release.program if release else (sys.executable, "-m", "appliance.cli")
        line = [*program, "order", "run", "--env-file", str(self.settings(own, **changed))]
        variables = release.variables if release else None
        log = self.directory / (f"{own}.log" if vm == 1 else f"{own}-{vm}.log")
        return await OwnedProcess.start(f"order of {own}", line, log, variables)

    @contextlib.asynccontextmanager
    async def processes(self, **changed: str) -> AsyncIterator[dict[str, OwnedProcess]]:
        """The processes beside all clusters; a test may put others in their places."""
        running = {name: await self.process(name, **changed) for name in self.clusters}
        try:
            yield running
        finally:
            await asyncio.gather(*(each.stop() for each in running.values()))

    def make_topic(self, name: str, partitions: int) -> None:
        """Make a topic in every cluster."""
        for cluster in self.clusters.values():
            make_topic(cluster, NewTopic(name, partitions, 1))

    @contextlib.asynccontextmanager
    async def followed(self, topic: str, partitions: int, *, single: bool = False) -> AsyncIterator[Chains]:
        """Read the topic and its T-global everywhere, once they are there."""
        await until(lambda: all(f"{topic}-global" in topics(cluster) for cluster in self.clusters.values()))
        with followed(self.clusters, topic, partitions, single) as chains:
            yield chains

    @contextlib.contextmanager
    def written(self, topic: str, partitions: int, seed: int, pause: float = 0.05) -> Iterator[Sequence[OrderWriter]]:
        """Write to the topic in every cluster while the block runs."""
        writers = [
            OrderWriter(name, cluster, topic, partitions, seed, pause) for name, cluster in self.clusters.items()
        ]
        for each in writers:
            each.start()
        try:
            yield writers
        finally:
            for each in writers:
                each.close()


async def until(holds: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait until something holds, which a thread finds out."""
    deadline = time.monotonic() + patience
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < deadline, "it does not hold in time"
        await asyncio.sleep(0.1)


async def settled(chains: Chains, *clusters: str) -> None:
    """Wait until these clusters show all records, and require that they are right."""
    before = -1
    deadline = time.monotonic() + PATIENCE
    while chains.missing(*clusters) or (there := sum(map(len, chains.origins.values()))) != before:
        before = sum(map(len, chains.origins.values()))
        chains.check()
        assert time.monotonic() < deadline, f"{chains.missing(*clusters)} are missing: {chains.ranks}"
        await asyncio.sleep(0.5)
    assert there
    chains.check(whole=True)


@contextlib.asynccontextmanager
async def ordered(count: int, directory: Path) -> AsyncIterator[Ordered]:
    """Start so many clusters, and the lines between them."""
    async with contextlib.AsyncExitStack() as stack:
        clusters = [Cluster(plan, directory) for plan in plans(count)]
        await asyncio.gather(*(stack.enter_async_context(cluster) for cluster in clusters))
        made = Ordered(dict(zip(NAMES, clusters, strict=False)), directory)
        for own, cluster in made.clusters.items():
            await _line(stack, made, own, own, Target("127.0.0.1", 0), cluster.home_targets[0])
            settings = read_order(made.settings(own), Role.REPLICATOR, {})
            addresses: dict[str, str] = {}
            for name in made.clusters:
                if name != own:
                    network = settings.link(name).tunnel.endpoint_network
                    addresses[name] = str(network[2 + [*made.clusters].index(own)])
                    port, node = made.clusters[name].ports.vpc, made.clusters[name].plan.nodes[0]
                    await _line(stack, made, own, name, Target(addresses[name], port), Target(node.address, port))
            made.shims[own] = await stack.enter_async_context(scripted_server(_names(addresses)))
        yield made


async def _line(
    stack: contextlib.AsyncExitStack, made: Ordered, own: str, name: str, listen: Target, target: Target
) -> None:
    """Make a line from the process beside one cluster to another cluster, or to the own one."""
    line = made.lines[own, name] = Proxy(listen, target)
    await line.start()
    stack.push_async_callback(line.close)


def _names(addresses: Mapping[str, str]) -> Script:
    async def script(query: bytes) -> list[bytes]:
        host = str(DNSRecord.parse(query).q.qname)
        return [answer(query, addresses[host.split(".")[1]])]

    return script
