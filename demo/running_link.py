"""All processes of the demo: two clusters, the source's DNS server and the three processes of the link.

In the directory of the run, which only its owner can read::

    orange/, grape/                       the clusters' files
    orange.properties, grape.properties   a client's configuration for each
    setenv.sh                             the link's settings
    source.log, destination.log, ...      the processes' output
    tmp/                                  their temporary files
"""

import asyncio
import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from appliance.dns.binding import bind
from appliance.errors import ProcessFailed
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from demo.appliances import Appliances
from demo.input import make_topics
from demo.setenv import ClusterAccess, LinkAddresses, process_environment, setenv_text
from testbed.cluster import Cluster
from testbed.layout import write_private
from testbed.plan import ApiKey, ClusterPlan
from testbed.tasks import to_the_end, together
from testbed.vpc_dns import ADDRESS, vpc_dns

_LOOPBACK = "127.0.0.1"
_WATCH_SECONDS = 0.2
_SILENT = {"log_level": "0"}


class RunningLink:
    """A running link, started by ``start_clusters`` and ``start_link``; leaving the context kills all its processes.

    Args:
        directory: the empty directory of this run.
    """

    def __init__(self, directory: Path) -> None:
        # A domain of its own keeps this run's brokers, and so its endpoints, apart from those of other runs.
        domain = f"vpc-{secrets.token_hex(3)}.example"
        self.directory = directory
        self.source = Cluster(_plan("orange", 3, "127.0.1.1", domain), directory)
        self.destination = Cluster(_plan("grape", 1, "127.0.2.1", domain), directory)
        self._appliances: Appliances | None = None
        self._undo = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await to_the_end(self._undo.aclose())

    @property
    def appliances(self) -> Appliances:
        """The link's processes.

        Raises:
            ProcessFailed: they have not been started yet.
        """
        if self._appliances is None:
            raise ProcessFailed("the link was not started")
        return self._appliances

    @property
    def env_file(self) -> Path:
        """The link's settings."""
        return self.directory / "setenv.sh"

    def properties_file(self, cluster: Cluster) -> Path:
        """A configuration file with which a librdkafka client, such as kcat, reaches one of the clusters."""
        return self.directory / f"{cluster.plan.name}.properties"

    @property
    def source_client(self) -> dict[str, str]:
        """The configuration with which the demo's own clients reach the source; their errors are raised, not logged."""
        return {**self.source.client_configuration(), **_SILENT}

    @property
    def destination_client(self) -> dict[str, str]:
        """The configuration with which the demo's own clients reach the destination."""
        return {**self.destination.client_configuration(), **_SILENT}

    async def start_clusters(self) -> None:
        """Start both clusters, and wait until both answer and the source has its topics.

        Raises:
            ProcessFailed, Unreachable: a cluster does not.
            ToolMissing: there is no Java.
        """
        for cluster in (self.source, self.destination):
            self._undo.push_async_callback(cluster.stop)
        await together(source=self.source.start(), destination=self.destination.start())
        for cluster in (self.source, self.destination):
            write_private(self.properties_file(cluster), _as_properties(cluster.client_configuration()))
        await asyncio.to_thread(make_topics, self.source_client)

    async def start_link(self) -> None:
        """Start the link, and wait until both ends of the tunnel listen; the replicator has been started by then.

        Raises:
            ProcessFailed: an end of the tunnel ended, or was not ready in time.
            SettingsError: a port was taken.
        """
        dns = vpc_dns(self.source.plan)
        await dns.start()
        self._undo.push_async_callback(dns.close)
        tunnel, shim, status, replicator = free_targets(4)
        addresses = LinkAddresses(tunnel, shim, Target(ADDRESS, dns.port), status, replicator)
        source = _access(self.source, self.source.vpc_targets)
        destination = _access(self.destination, self.destination.home_targets)
        write_private(self.env_file, setenv_text(source, destination, addresses).encode())
        temporary = self.directory / "tmp"  # short: Spark's Unix sockets lie in it
        temporary.mkdir()
        self._appliances = Appliances(self.env_file, self.directory, process_environment(os.environ, temporary))
        self._undo.push_async_callback(self._appliances.close)
        await together(gateways=self._appliances.start_gateways(), replicator=self._appliances.start_replicator())

    def require_running(self) -> None:
        """Require that every started process is running.

        Raises:
            ProcessFailed: a process has ended.
        """
        for cluster in (self.source, self.destination):
            for node in cluster.plan.nodes:
                cluster.broker(node.id).process.require_running()
        self.appliances.require_running()

    async def watch(self) -> None:
        """Watch the processes until cancelled.

        Raises:
            ProcessFailed: a process has ended.
        """
        while True:
            self.require_running()
            await asyncio.sleep(_WATCH_SECONDS)


def _plan(name: str, size: int, first_address: str, domain: str) -> ClusterPlan:
    user = ApiKey(f"{name}_key", Secret(secrets.token_hex(24)))
    return ClusterPlan.secure(name, size=size, first_address=first_address, api_keys=(user,), domain=domain)


def _access(cluster: Cluster, bootstrap: tuple[Target, ...]) -> ClusterAccess:
    if cluster.ca_file is None:
        raise ProcessFailed(f"cluster {cluster.plan.name} has no certificate authority")
    return ClusterAccess(cluster.plan.name, bootstrap, cluster.plan.api_keys[0], cluster.ca_file)


def free_targets(count: int) -> list[Target]:
    """Loopback addresses with ports that are now free for UDP and for TCP."""
    with contextlib.ExitStack() as held:
        bound = [bind(Target(_LOOPBACK, 0)) for _ in range(count)]
        for pair in bound:
            for taken in pair:
                held.enter_context(taken)
        return [Target(_LOOPBACK, streams.getsockname()[1]) for _, streams in bound]


def _as_properties(configuration: Mapping[str, str]) -> bytes:
    return "".join(f"{name}={value}\n" for name, value in configuration.items()).encode()
