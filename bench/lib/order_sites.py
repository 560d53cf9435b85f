"""Three clusters with a line from each to the others, and the processes of an order beside them."""

import contextlib
import dataclasses
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.target import Target
from bench.lib.clusters import Pair
from bench.lib.our_replicator import exports
from bench.lib.running import running
from bench.lib.wan_proxy import Route
from bench.lib.wan_sites import FarCluster
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from testbed.process import OwnedProcess

HOME, SPOKE, THIRD = "orange", "grape", "lemon"
_ADDRESSES = {HOME: "127.0.24", SPOKE: "127.0.25", THIRD: "127.0.26"}
"""The cluster has the address .1 in its network; .2 is the line to it."""


@dataclass(frozen=True, slots=True)
class OrderSites:
    """The clusters, each as its neighbours see it: ``far`` is behind a line, or the cluster itself without one."""

    clusters: Mapping[str, Cluster]
    far: Mapping[str, Cluster]
    directory: Path

    def over(self, *, line: bool) -> "OrderSites":
        """The same clusters with their line, or without one."""
        far = {name: FarCluster(cluster) if line else cluster for name, cluster in self.clusters.items()}
        return dataclasses.replace(self, far=far)

    @property
    def link(self) -> Pair:
        """The clusters of a plain link from the spoke to the home, as its process reaches them."""
        return Pair(self.far[SPOKE], self.clusters[HOME], self.directory)

    @contextlib.asynccontextmanager
    async def ordered(self, topic: str, run: str) -> AsyncIterator[list[OwnedProcess]]:
        """Order this topic, by a process beside each cluster."""
        async with contextlib.AsyncExitStack() as stack:
            started = []
            for name in self.clusters:
                file = self._settings(name, topic)
                command = [sys.executable, "-m", "appliance.cli", "order", "run", "--env-file", str(file)]
                log = f"order-{name}-{run}"
                process = running(f"the order beside {name}", command, self.directory, log_name=log)
                started.append(await stack.enter_async_context(process))
            yield started

    def _settings(self, own: str, topic: str) -> Path:
        values = {
            "GLOBAL_CLUSTERS": ",".join(self.clusters),
            "GLOBAL_CLUSTER": own,
            "GLOBAL_HOME": HOME,
            "GLOBAL_TOPICS_REGEX": re.escape(topic),
            "GLOBAL_ROUTE": "direct",
        }
        for name in self.clusters:
            cluster = self.clusters[name] if name == own else self.far[name]
            values[f"{name.upper()}_BROKER_SERVERS"] = cluster.home_bootstrap
            values[f"{name.upper()}_SECURITY_PROTOCOL"] = "PLAINTEXT"
        file = self.directory / f"order-{own}.sh"
        file.touch(mode=0o600)
        file.write_text(exports(values))
        return file


@contextlib.asynccontextmanager
async def order_sites(round_trip: float, bandwidth: float) -> AsyncIterator[OrderSites]:
    """Start the clusters and the line to each. ``round_trip`` is in seconds, ``bandwidth`` in bytes a second."""
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        clusters = {}
        for name, network in _ADDRESSES.items():
            plan = ClusterPlan.plain(name, address=f"{network}.1")
            plan = dataclasses.replace(plan, nodes=(Node(0, f"{network}.1", fqdn=f"{network}.2"),))
            clusters[name] = await stack.enter_async_context(Cluster(plan, directory))
        routes = [
            Route(Target(f"{_ADDRESSES[name]}.2", each.ports.vpc), Target(f"{_ADDRESSES[name]}.1", each.ports.vpc))
            for name, each in clusters.items()
        ]
        options = ["--round-trip", str(round_trip), "--bandwidth", str(bandwidth), *map(str, routes)]
        command = [sys.executable, "-m", "bench.lib.wan_proxy", *options]
        await stack.enter_async_context(running("the lines", command, directory, "^ready$"))
        yield OrderSites(clusters, clusters, directory)
