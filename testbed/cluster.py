"""A real Kafka cluster on loopback addresses, in a context::

    async with Cluster(plan, directory) as cluster:
        producer = Producer(cluster.client_configuration())

Its brokers die with this process; its files live in ``directory/<name of the plan>`` and are removed when it stops.
"""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from appliance.errors import ProcessFailed
from appliance.settings.target import Target
from testbed.broker import Broker, ZooKeeper
from testbed.layout import free_ports, make_directory, new_cluster_id, node_directory, write_files
from testbed.plan import ApiKey, ClusterPlan, Ports
from testbed.properties import client_configuration
from testbed.rehearsal import kafka_installation

_READY_SECONDS = 90.0

log = logging.getLogger("demo")


class Cluster:
    """The brokers of one plan; ``start`` and ``stop`` them, or use it as an asynchronous context manager."""

    def __init__(self, plan: ClusterPlan, directory: Path) -> None:
        self.plan = plan
        self.directory = directory / plan.name
        self._ports: Ports | None = None
        self._brokers: dict[int, Broker] = {}
        self._undo = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Wait until every broker sees all of them. The first start on a machine downloads Kafka.

        Raises:
            ProcessFailed: a broker ended or was not ready in time; the text ends with the tail of its log.
            SettingsError: the plan's VPC port is taken, or the cluster's directory exists.
            ToolMissing: there is no Java.
        """
        try:
            await self._launch()
            await self._wait_until_ready(self._brokers.values())
        except BaseException:
            await self.stop()
            raise
        fields = {"cluster": self.plan.name, "brokers": len(self._brokers), "bootstrap": self.home_bootstrap}
        log.info("cluster ready", extra={"fields": fields})

    def use(self, ports: Ports) -> None:
        """Know the ports of the brokers, which another process runs from the same plan and directory."""
        self._ports = ports

    async def stop(self) -> None:
        """Kill the brokers and remove their files; do nothing if none runs."""
        await self._undo.aclose()
        self._brokers.clear()
        self._ports = None

    async def __aenter__(self) -> "Cluster":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    async def kill(self, node_id: int) -> None:
        """Send SIGKILL to one broker; its log stays."""
        await self.broker(node_id).kill()

    async def restart(self, node_id: int) -> None:
        """Start a killed broker again on its log and its ports, and wait until it sees all brokers.

        Raises:
            ProcessFailed: it ended or was not ready in time.
        """
        broker = self.broker(node_id)
        await broker.kill()
        await broker.launch()
        await self._wait_until_ready([broker])

    def broker(self, node_id: int) -> Broker:
        """One of the brokers, running or killed.

        Raises:
            ProcessFailed: the cluster has no such node, or does not run.
        """
        if node_id not in self._brokers:
            raise ProcessFailed(f"cluster {self.plan.name} runs no broker {node_id}")
        return self._brokers[node_id]

    @property
    def ports(self) -> Ports:
        """The ports of its listeners.

        Raises:
            ProcessFailed: it does not run.
        """
        if self._ports is None:
            raise ProcessFailed(f"cluster {self.plan.name} does not run")
        return self._ports

    @property
    def home_targets(self) -> tuple[Target, ...]:
        """The brokers by address, for clients of the home network."""
        return self.plan.home_targets(self.ports)

    @property
    def vpc_targets(self) -> tuple[Target, ...]:
        """The brokers by FQDN, as clients in their own network reach them; these names do not resolve here."""
        return self.plan.vpc_targets(self.ports)

    @property
    def home_bootstrap(self) -> str:
        """``home_targets`` as bootstrap.servers."""
        return ",".join(str(target) for target in self.home_targets)

    @property
    def ca_file(self) -> Path | None:
        """The authority that clients must trust; None when nothing is encrypted."""
        return self.directory / "ca.pem" if self.plan.security.encrypted else None

    def client_configuration(self, api_key: ApiKey | None = None) -> dict[str, str]:
        """A confluent-kafka configuration for HOME, logging in with ``api_key``, or with the plan's first."""
        return self._client_of(self.home_targets, api_key)

    def _client_of(self, bootstrap: tuple[Target, ...], api_key: ApiKey | None = None) -> dict[str, str]:
        known = next(iter(self.plan.api_keys), None)
        return client_configuration(self.plan, bootstrap, self.ca_file, api_key or known)

    async def _launch(self) -> None:
        installation = await kafka_installation(self.plan.version)
        self._ports = free_ports([node.address for node in self.plan.nodes], self.plan.vpc_port)
        make_directory(self.directory)
        self._undo.callback(shutil.rmtree, self.directory)
        write_files(self.plan, self._ports, self.directory)
        if self.plan.on_zookeeper:
            zookeeper = ZooKeeper(self.plan, self._ports.controller, self.directory, installation)
            self._undo.push_async_callback(zookeeper.kill)
            await zookeeper.launch()
        cluster_id = new_cluster_id()
        for node in self.plan.nodes:
            broker = Broker(self.plan, node, node_directory(self.directory, node), installation)
            broker.format(cluster_id)
            self._undo.push_async_callback(broker.kill)
            self._brokers[node.id] = broker
            await broker.launch()

    async def _wait_until_ready(self, brokers: Iterable[Broker]) -> None:
        """Wait for all at once; the first failure ends the wait for the others."""
        try:
            async with asyncio.TaskGroup() as waiting:
                for broker in brokers:
                    client = self._client_of((Target(broker.node.address, self.ports.home),))
                    waiting.create_task(broker.wait_until_ready(client, _READY_SECONDS), name=f"{broker.name} ready")
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
