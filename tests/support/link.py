"""A complete link as a user runs it: two secured clusters, and the appliance's commands as processes."""

import contextlib
import os
import secrets
import shlex
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from appliance.dns.server import DnsServer
from appliance.settings.secret import Secret
from appliance.settings.target import Target, normal_host
from appliance.settings.values import DnsSettings
from bench.lib.running import OWN_ADDRESS, free_port
from testbed.cluster import Cluster
from testbed.plan import ApiKey, ClusterPlan
from testbed.process import OwnedProcess
from tests.support.administration import clear, make_topic, own_topics
from tests.support.patience import PATIENCE
from tests.support.processes import family
from tests.support.releases import Release

ORANGE_KEY = ApiKey("ORANGE", Secret("orange-api-secret"))
GRAPE_KEY = ApiKey("GRAPE", Secret("grape-api-secret"))


@dataclass(slots=True)
class Link:
    """Both clusters, the source VPC's DNS, and a folder for settings and logs."""

    orange: Cluster
    grape: Cluster
    vpc_dns: DnsServer
    directory: Path
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(33), repr=False)
    tunnel_port: int = field(default_factory=lambda: free_port(OWN_ADDRESS))
    shim: str = field(default_factory=lambda: f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}")
    names: dict[str, IPv4Address] = field(default_factory=dict)
    """The address of a broker by the source VPC's DNS."""

    def variables(self) -> dict[str, str]:
        """A valid setenv.sh."""
        first, *_ = self.orange.vpc_targets
        domain = first.host.partition(".")[2]
        return {
            "SOURCE_CLUSTER_ID": "orange",
            "SOURCE_BROKER_SERVERS": str(first),
            "SOURCE_BROKER_PATTERN": f"*.{domain}:{first.port}",
            "SOURCE_API_KEY": ORANGE_KEY.key,
            "SOURCE_API_SECRET": ORANGE_KEY.secret.reveal(),
            "SOURCE_CA_FILE": str(self.orange.ca_file),
            "DESTINATION_CLUSTER_ID": "grape",
            "DESTINATION_BROKER_SERVERS": self.grape.home_bootstrap,
            "DESTINATION_API_KEY": GRAPE_KEY.key,
            "DESTINATION_API_SECRET": GRAPE_KEY.secret.reveal(),
            "DESTINATION_CA_FILE": str(self.grape.ca_file),
            "REPLICA_TOPICS_SOURCE_REGEX": "orders.*",
            "REPLICA_TOPICS_DEST_SUFFIX": "copy",
            "SOURCE_SIDE_TUNNEL_IP": OWN_ADDRESS,
            "DESTINATION_SIDE_TUNNEL_IP": "127.0.0.1",
            "SHARED_SECRET": self.secret,
            "TUNNEL_PORT": str(self.tunnel_port),
            "TUNNEL_LISTEN": OWN_ADDRESS,
            "TUNNEL_RESOLVER": f"127.0.0.1:{self.vpc_dns.port}",
            "TUNNEL_BROKER_NETWORKS": "127.0.0.0/16",
            "TUNNEL_STATUS_LISTEN": "127.0.0.1:0",
            "DNS_LISTEN": self.shim,
            "CONSOLE_LISTEN": "127.0.0.1:0",
            "DISCOVERY_SECONDS": "1",
            "TASKS": "1",
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that only the processes of the link may read."""
        return self.secret, ORANGE_KEY.secret.reveal(), GRAPE_KEY.secret.reveal()

    async def start(
        self,
        command: str,
        environment: Mapping[str, str] = os.environ,
        options: Sequence[str] = (),
        program: str = "appliance.cli",
        release: Release | None = None,
        **changed: str,
    ) -> OwnedProcess:
        """Start one of the appliance's commands, with changed settings.

        ``program`` is a module that has them; with ``release`` it is that release's command, in its own environment.
        """
        name = f"{command}-{time.monotonic_ns()}"
        env_file = self.directory / f"{name}.sh"
        variables = self.variables() | ({"CONTROL_CENTER_HISTORY": "none"} if command == "console" else {}) | changed
        env_file.write_text("".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items()))
        env_file.chmod(0o600)
        beginning = release.program if release else (sys.executable, "-m", program)
        command_line = [*beginning, command, *options, "--env-file", str(env_file)]
        own = {**(release.variables if release else environment), "TMPDIR": str(self.directory)}
        return await OwnedProcess.start(name, command_line, self.directory / f"{name}.log", own)

    @contextlib.asynccontextmanager
    async def running(
        self, command: str, *options: str, program: str = "appliance.cli", **changed: str
    ) -> AsyncIterator[OwnedProcess]:
        """One of the appliance's commands, stopped at the end of the block."""
        process = await self.start(command, options=options, program=program, **changed)
        try:
            yield process
        finally:
            await process.kill()

    @contextlib.asynccontextmanager
    async def tunnel(self) -> AsyncIterator[tuple[OwnedProcess, OwnedProcess]]:
        """Both ends of the tunnel, ready."""
        async with self.running("source") as source, self.running("destination") as destination:
            await source.wait_for_line("ready", PATIENCE)
            await destination.wait_for_line("ready", PATIENCE)
            yield source, destination

    def make_topic(self, cluster: Cluster, name: str, partitions: int = 1, **configs: str) -> None:
        make_topic(cluster, NewTopic(name, partitions, 1, config=configs))

    def topics(self, cluster: Cluster) -> set[str]:
        return own_topics(cluster)

    def produce(self, topic: str, count: int, partition: int = 0, value: bytes = b"") -> None:
        producer = Producer(self.orange.client_configuration())
        for number in range(count):
            producer.produce(topic, value or b"value %d" % number, b"key %d" % number, partition)
        assert producer.flush(PATIENCE) == 0

    def clear(self) -> None:
        """Delete all our topics on both sides, so that the next test begins with a new link."""
        for cluster in (self.orange, self.grape):
            clear(cluster)


ORANGE = ClusterPlan.secure("orange", size=1, first_address="127.0.4.1", api_keys=(ORANGE_KEY,))
GRAPE = ClusterPlan.secure("grape", size=1, first_address="127.0.5.1", api_keys=(GRAPE_KEY,))


@contextlib.asynccontextmanager
async def link(
    directory: Path, orange_plan: ClusterPlan = ORANGE, grape_plan: ClusterPlan = GRAPE
) -> AsyncIterator[Link]:
    """Both clusters, with one broker each by default; the source's names resolve only in its own DNS."""
    orange, grape = Cluster(orange_plan, directory), Cluster(grape_plan, directory)
    async with orange, grape:
        names = {node.fqdn: IPv4Address(node.address) for node in orange_plan.nodes if node.fqdn}

        async def lookup(host: str) -> IPv4Address | None:
            return names.get(normal_host(host))

        dns = DnsServer(DnsSettings(Target("127.0.0.1", 0), None), lookup)
        await dns.start()
        try:
            yield Link(orange, grape, dns, directory, names=names)
        finally:
            await dns.close()


def shown_by(process: OwnedProcess) -> str:
    """The output of a process, and the machine's public view of it and its children."""
    names = [Path(f"/proc/{one.pid}/{name}") for one in family(process.pid) for name in ("cmdline", "environ")]
    return "\n".join(_text(path) for path in (process.log_file, *names))


def command_lines(process: OwnedProcess) -> list[str]:
    """The machine's public view of a process and its children."""
    return [_text(Path(f"/proc/{one.pid}/cmdline")) for one in family(process.pid)]


def _text(path: Path) -> str:
    """The text of the file; empty for a process that has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return path.read_text()
    return ""


def lines(process: OwnedProcess) -> Iterator[str]:
    """The output of a process."""
    yield from process.log_file.read_text().splitlines()


def ended_by(process: OwnedProcess) -> str:
    """The one line by which a command has ended; before, a busy machine may have had it tell of something that passes.

    Raises:
        ValueError: there are none, or several.
    """
    (line,) = (line for line in lines(process) if line.startswith("appliance "))
    return line


def faults(process: OwnedProcess) -> list[str]:
    """The output of a process above level info, without Java's usual messages about Spark's libraries."""
    return [line for line in lines(process) if " INFO " not in line and "Using incubator modules" not in line]
