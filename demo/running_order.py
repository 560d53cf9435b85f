"""All processes of the demo of an order: three clusters of one broker, and the three processes of each cluster's VM.

In the directory of the run, which only its owner can read::

    orange/, grape/, lemon/            the clusters' files
    orange-vm/, grape-vm/, lemon-vm/   each VM's setenv.sh, and its processes' output
    tmp/                               their temporary files
"""

import asyncio
import base64
import contextlib
import json
import os
import secrets
import sys
import urllib.request
from pathlib import Path
from typing import Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from appliance.errors import Unreachable
from appliance.settings.target import Target
from appliance.settings.values import SecurityProtocol
from demo.appliances import Appliances
from demo.order_setenv import ADDRESSES, TOPIC, OrderAddresses, order_setenv
from demo.running_link import free_targets
from demo.setenv import process_environment
from testbed.cluster import Cluster
from testbed.layout import free_ports, make_directory, write_private
from testbed.plan import ClusterPlan, Node
from testbed.process import OwnedProcess
from testbed.tasks import to_the_end, together
from testbed.vpc_dns import ADDRESS, vpc_dns

_WATCH_SECONDS = 0.2
_ADMIN_SECONDS = 30.0
_COMMAND_SECONDS = 90.0
_PAGE_SECONDS = 5.0


class RunningOrder:
    """A running order, started by ``start_clusters`` and ``start_vms``; leaving the context kills all its processes.

    Args:
        directory: the empty directory of this run.
    """

    def __init__(self, directory: Path) -> None:
        domain = f"vpc-{secrets.token_hex(3)}.example"
        self.directory = directory
        self.clusters = {name: Cluster(_plan(name, domain), directory) for name in ADDRESSES}
        self.vms: dict[str, Appliances] = {}
        self._pages: dict[str, Target] = {}
        self._environment: dict[str, str] = {}
        self._undo = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await to_the_end(self._undo.aclose())

    def client(self, name: str) -> dict[str, str]:
        """The configuration with which the demo's own clients reach a cluster; their errors are raised, not logged."""
        return {**self.clusters[name].client_configuration(), "log_level": "0"}

    async def start_clusters(self) -> None:
        """Start all clusters, and wait until each answers and has its topic.

        Raises:
            ProcessFailed, Unreachable: a cluster does not.
            ToolMissing: there is no Java.
        """
        for cluster in self.clusters.values():
            self._undo.push_async_callback(cluster.stop)
        await together(**{name: cluster.start() for name, cluster in self.clusters.items()})
        await together(**{name: asyncio.to_thread(_make_topic, self.client(name)) for name in self.clusters})

    async def start_vms(self) -> None:
        """Start the processes of all VMs, and wait until both ends of each tunnel listen.

        Raises:
            ProcessFailed: one ended, or was not ready in time.
            SettingsError: a port was taken.
        """
        temporary = self.directory / "tmp"
        temporary.mkdir()
        others = tuple(f"{name.upper()}_" for name in self.clusters)
        ours = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        self._environment = process_environment(ours, temporary)
        port, secret = free_ports([*ADDRESSES.values()]).vpc, base64.b64encode(secrets.token_bytes(33)).decode()
        for name in self.clusters:
            await self._prepare_vm(name, port, secret)
        await together(**{name: self.start_vm(name) for name in self.clusters})

    async def start_vm(self, name: str) -> None:
        """Start the processes of a VM, all of which are down.

        Raises:
            ProcessFailed: as ``start_vms``.
        """
        vm = self.vms[name]
        await together(gateways=vm.start_gateways(), order=vm.start_replicator())

    async def command(self, own: str, *words: str) -> None:
        """Run ``bin/appliance order ...`` on the VM beside a cluster.

        Raises:
            ProcessFailed: it failed; the text has its output.
        """
        name = f"appliance order {' '.join(words)}"
        line = [sys.executable, "-m", "appliance.cli", "order", *words, "--env-file", str(self._env_file(own))]
        process = await OwnedProcess.start(name, line, self._env_file(own).parent / "commands.log", self._environment)
        try:
            if status := await process.wait(_COMMAND_SECONDS):
                raise process.failure(f"ended with status {status}")
        finally:
            await process.kill()

    async def homes(self, own: str) -> set[str]:
        """The homes of all lanes, as the page of a VM shows them; none while a lane has none, or it is unknown."""
        try:
            shown = await asyncio.to_thread(_page, self._pages[own])
        except OSError:
            return set()
        epochs = [lane["epoch"] for lane in shown["lanes"]]
        opened = all(partition["open"] for partition in shown["partitions"])
        return {each["home"] for each in epochs} if opened and all(epochs) else set()

    def require_running(self) -> None:
        """Require that every started process is running, but for those that were killed.

        Raises:
            ProcessFailed: a process has ended.
        """
        for cluster in self.clusters.values():
            cluster.broker(0).process.require_running()
        for vm in self.vms.values():
            vm.require_running()

    async def watch(self) -> None:
        """Watch the processes until cancelled.

        Raises:
            ProcessFailed: a process has ended.
        """
        while True:
            self.require_running()
            await asyncio.sleep(_WATCH_SECONDS)

    def _env_file(self, own: str) -> Path:
        return self.directory / f"{own}-vm" / "setenv.sh"

    async def _prepare_vm(self, own: str, port: int, secret: str) -> None:
        dns = vpc_dns(self.clusters[own].plan)
        await dns.start()
        self._undo.push_async_callback(dns.close)
        shim, console = free_targets(2)
        addresses = OrderAddresses(shim, Target(ADDRESS, dns.port), console)
        brokers = {name: cluster.vpc_targets[0] for name, cluster in self.clusters.items()}
        home = Target("localhost", self.clusters[own].ports.home)  # settings with a tunnel take no addresses
        make_directory(self._env_file(own).parent)
        write_private(self._env_file(own), order_setenv(own, brokers, home, port, secret, addresses).encode())
        vm = Appliances(self._env_file(own), self._env_file(own).parent, self._environment, "order run")
        self._pages[own], self.vms[own] = console, vm
        self._undo.push_async_callback(vm.close)


def _plan(name: str, domain: str) -> ClusterPlan:
    return ClusterPlan(name, (Node(0, "127.0.0.1", f"b0.{name}.{domain}"),), SecurityProtocol.PLAINTEXT)


def _make_topic(client: dict[str, str]) -> None:
    wanted = NewTopic(TOPIC.name, TOPIC.partitions)
    admin = AdminClient({**client})  # which ends the work on futures when it goes
    try:
        for future in admin.create_topics([wanted], request_timeout=_ADMIN_SECONDS).values():
            future.result(_ADMIN_SECONDS)
    except KafkaException as error:
        raise Unreachable(f"the topic {TOPIC.name} could not be made: {error.args[0]}") from error


def _page(at: Target) -> Any:
    with urllib.request.urlopen(f"http://{at}/status", timeout=_PAGE_SECONDS) as answer:
        return json.load(answer)
