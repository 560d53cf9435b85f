"""Two clusters with a long line between them; the copying program runs at the destination's end."""

import contextlib
import dataclasses
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.target import Target
from bench.lib.clusters import Pair
from bench.lib.running import LOOPBACK, running
from bench.lib.tunnel_load import Entrance, streamed
from bench.lib.tunnel_ways import target
from bench.lib.wan_proxy import Route
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node, Ports
from testbed.process import OwnedProcess
from testbed.tasks import in_thread

_SOURCE, _LINE, _DESTINATION = "127.0.21.1", "127.0.21.2", "127.0.22.1"
_MEGABYTE = 1e6


class FarCluster(Cluster):
    """A running cluster, as a client at the other end of the line sees it.

    Its brokers have two listeners. HOME is reached directly. VPC advertises the proxy's address, so a client that
    bootstraps from it uses the line for all connections.
    """

    def __init__(self, near: Cluster) -> None:
        super().__init__(near.plan, near.directory.parent)
        self._near = near

    @property
    def ports(self) -> Ports:
        """The ports of both listeners."""
        return self._near.ports

    @property
    def home_targets(self) -> tuple[Target, ...]:
        """The brokers, through the line."""
        return self.vpc_targets


@dataclass(frozen=True, slots=True)
class Sites:
    """The source for direct access, both clusters as the copying program reaches them, and the proxy.

    ``entrance`` is the address at which a plain stream enters the line.
    """

    source: Cluster
    pair: Pair
    proxy: OwnedProcess
    entrance: Entrance

    async def capacity(self, streams: int, seconds: float) -> float:
        """Megabytes a second that plain streams carry through the line."""
        return await in_thread(lambda _: streamed(self.entrance, streams, seconds)) / _MEGABYTE


@contextlib.asynccontextmanager
async def far_sites(round_trip: float, bandwidth: float) -> AsyncIterator[Sites]:
    """Start both sites, and remove them afterwards. ``round_trip`` is in seconds, ``bandwidth`` in bytes a second."""
    plain_source = ClusterPlan.plain("source", address=_SOURCE)
    source = dataclasses.replace(plain_source, nodes=(Node(0, _SOURCE, fqdn=_LINE),))
    destination = ClusterPlan.plain("destination", address=_DESTINATION)
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        near = await stack.enter_async_context(Cluster(source, directory))
        home = await stack.enter_async_context(Cluster(destination, directory))
        plain = Target(LOOPBACK, await stack.enter_async_context(target(directory)))
        entrance = Target(_LINE, plain.port)
        routes = [
            Route(Target(_LINE, near.ports.vpc), Target(_SOURCE, near.ports.vpc)),
            Route(entrance, plain),
        ]
        options = ["--round-trip", str(round_trip), "--bandwidth", str(bandwidth), *map(str, routes)]
        command = [sys.executable, "-m", "bench.lib.wan_proxy", *options]
        proxy = await stack.enter_async_context(running("the line", command, directory, "^ready$"))
        yield Sites(near, Pair(FarCluster(near), home, directory), proxy, (entrance.host, entrance.port))
