"""The processes on the machines of the topology, each with a log."""

import contextlib
import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from demo.setenv import process_environment
from testbed.process import OwnedProcess
from tests.networks.clusters import GRAPE, GRAPE_DNS, ORANGE, PLAIN_USER, REPLICATED, SCRAM_USER, bootstrap
from tests.networks.topology import (
    BASTION,
    DESTINATION_SIDE_TUNNEL_IP,
    SHIM,
    SOURCE_SIDE_TUNNEL_IP,
    SOURCE_VPC,
    TUNNEL_PORT,
    Topology,
    close,
)
from tests.support.namespace import Namespace
from tests.support.settings import write_settings

READY_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Vpcs:
    """The machines, and a directory for logs, settings and the clusters' files."""

    machines: Topology
    directory: Path
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(33), repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the processes, without the user's settings."""
        return process_environment(os.environ, self.directory)

    def ca_file(self, cluster: str) -> Path:
        """The certificate authority's file for the clients of a cluster."""
        return self.directory / cluster / "ca.pem"

    def variables(self) -> dict[str, str]:
        """The link's setenv.sh: the required variables, and those for the files and the VPC's own DNS."""
        seed, other = ORANGE.nodes
        return {
            "SOURCE_CLUSTER_ID": "orange",
            "SOURCE_BROKER_SERVERS": str(bootstrap(ORANGE)),
            "SOURCE_BROKER_PATTERN": f"*.orange.example:{seed.vpc_port}-{other.vpc_port}",
            "SOURCE_SASL_MECHANISM": "SCRAM-SHA-512",
            "SOURCE_API_KEY": SCRAM_USER.key,
            "SOURCE_API_SECRET": SCRAM_USER.secret.reveal(),
            "SOURCE_CA_FILE": str(self.ca_file("orange")),
            "DESTINATION_CLUSTER_ID": "grape",
            "DESTINATION_BROKER_SERVERS": str(bootstrap(GRAPE)),
            "DESTINATION_API_KEY": PLAIN_USER.key,
            "DESTINATION_API_SECRET": PLAIN_USER.secret.reveal(),
            "DESTINATION_CA_FILE": str(self.ca_file("grape")),
            "REPLICA_TOPICS_SOURCE_REGEX": REPLICATED,
            "REPLICA_TOPICS_DEST_SUFFIX": "copy",
            "SOURCE_SIDE_TUNNEL_IP": SOURCE_SIDE_TUNNEL_IP,
            "DESTINATION_SIDE_TUNNEL_IP": DESTINATION_SIDE_TUNNEL_IP,
            "SHARED_SECRET": self.secret,
            "TUNNEL_PORT": str(TUNNEL_PORT),
            "DNS_LISTEN": f"{SHIM}:53",
            "DNS_UPSTREAM": str(GRAPE_DNS),
        }

    async def start(self, machine: Namespace, name: str, module: str, *arguments: str) -> OwnedProcess:
        """Start a Python module on a machine."""
        return await self.start_command(machine, name, sys.executable, "-m", module, *arguments)

    async def start_command(self, machine: Namespace, name: str, *command: str) -> OwnedProcess:
        """Start any program on a machine."""
        log = self.directory / f"{name}.log"
        return await OwnedProcess.start(name, machine.command(*command), log, self.environment)

    async def start_appliance(self, machine: Namespace, command: str, **changed: str) -> OwnedProcess:
        """Start one of the appliance's commands on a machine, with its own settings."""
        name = f"{command}-{secrets.token_hex(3)}"
        env_file = self._env_file(name, self.variables() | changed)
        return await self.start(machine, name, "appliance.cli", command, "--env-file", env_file)

    def open_firewall(self, **changed: str) -> None:
        """Set the source VMs' firewalls to the rules that ``prepare`` prints, with their placeholders filled in."""
        env_file = self._env_file("firewall", self.variables() | changed)
        prepare = (sys.executable, "-m", "deploy.prepare", "source", "--env-file", env_file)
        printed = self.machines.source_vm.say(*prepare, "--firewall", "nftables", environment=self.environment)
        for blank, network in (("CIDR_OF_SOURCE_BROKERS", SOURCE_VPC), ("CIDR_OF_THE_BASTION_INSIDE", f"{BASTION}/32")):
            printed = printed.replace(blank, network)
        for vm in self.machines.source_vms:
            close(vm)
            vm.say("nft", "-f", "-", given=printed)

    def _env_file(self, name: str, variables: Mapping[str, str]) -> str:
        return str(write_settings(self.directory / f"{name}.sh", variables))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Both clusters, and the destination VPC's DNS."""
        programs = "tests.networks.programs"
        async with contextlib.AsyncExitStack() as undo:
            started = [
                await self.start(machine, name, f"{programs}.{module}", *arguments)
                for machine, name, module, arguments in (
                    (self.machines.destination_vpc, "dns", "resolver", ()),
                    (self.machines.source_vpc, "orange-brokers", "brokers", ("orange", str(self.directory))),
                    (self.machines.destination_vpc, "grape-brokers", "brokers", ("grape", str(self.directory))),
                )
            ]
            for process in started:
                undo.push_async_callback(process.stop)
            for process in started:
                await process.wait_for_line("^ready$", READY_SECONDS)
            yield

    @contextlib.asynccontextmanager
    async def appliance(self, machine: Namespace, command: str, **changed: str) -> AsyncIterator[OwnedProcess]:
        """One of the appliance's commands, ready; it is stopped at the end of the block."""
        process = await self.start_appliance(machine, command, **changed)
        try:
            await process.wait_for_line(r"\bready\b", READY_SECONDS)
            yield process
        finally:
            await process.stop()
