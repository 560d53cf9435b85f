"""One broker of a cluster: its files, its process and its readiness."""

import asyncio
import logging
import shutil
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from appliance.errors import ProcessFailed
from testbed.installation import Installation
from testbed.jars import checkpoint_place
from testbed.plan import ClusterPlan, Node
from testbed.process import OwnedProcess

_METADATA_SECONDS = 2.0
_LOG_NAME = "kafka.log"

log = logging.getLogger("demo")


class Broker:
    """A broker whose directory already holds server.properties and, if needed, broker.pem."""

    def __init__(self, plan: ClusterPlan, node: Node, directory: Path, installation: Installation) -> None:
        self.node = node
        self.directory = directory
        self._plan = plan
        self._installation = installation
        self._process: OwnedProcess | None = None

    @property
    def name(self) -> str:
        """The broker's name in messages."""
        return f"broker {self.node.hosts[0]}"

    @property
    def process(self) -> OwnedProcess:
        """Its process, running or not.

        Raises:
            ProcessFailed: it was never launched.
        """
        if self._process is None:
            raise ProcessFailed(f"{self.name} was never launched")
        return self._process

    def format(self, cluster_id: str) -> None:
        """Make an empty log directory of the cluster, as ``kafka-storage format`` does but without its JVM.

        With ZooKeeper the directory stays empty.
        """
        data = self.directory / "data"
        data.mkdir()
        if self._installation.checkpoint is None:
            return
        (data / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={self.node.id}\n")
        place = data / checkpoint_place(self._plan.version)
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(self._installation.checkpoint, place)

    async def launch(self) -> None:
        """Start the process on its log directory, empty or not."""
        properties = str(self.directory / "server.properties")
        command = self._installation.command(self._plan, self.directory, "kafka.Kafka", properties)
        self._process = await OwnedProcess.start(self.name, command, self.directory / _LOG_NAME)
        log.info("broker launched", extra={"fields": {"broker": self.node.hosts[0], "pid": self._process.pid}})

    async def kill(self) -> None:
        """Send SIGKILL, as in a power cut; do nothing if it was never launched."""
        if self._process is not None:
            await self._process.kill()

    async def wait_until_ready(self, client: dict[str, str], timeout: float) -> None:
        """Wait until its metadata list all brokers of the cluster.

        Args:
            client: configuration of a confluent-kafka client that knows this broker alone.
            timeout: in seconds.

        Raises:
            ProcessFailed: it ended, or did not list them in time.
        """

        async def answers() -> bool:
            return await asyncio.to_thread(_brokers_seen, client) == len(self._plan.nodes)

        deadline = asyncio.get_running_loop().time() + timeout
        host, _, port = client["bootstrap.servers"].rpartition(":")
        await self.process.wait_for_port(host, int(port), timeout)
        left = deadline - asyncio.get_running_loop().time()
        await self.process.wait_until(answers, left, f"see all {len(self._plan.nodes)} brokers")


def _brokers_seen(client: dict[str, str]) -> int:
    """The number of brokers in the metadata of one bootstrap server; 0 when it does not answer."""
    admin = AdminClient({**client, "log_level": 0, "reconnect.backoff.max.ms": 100})
    try:
        return len(admin.list_topics(timeout=_METADATA_SECONDS).brokers)
    except KafkaException:
        return 0


_DEADLINE = 90.0
_PROGRAM = "org.apache.zookeeper.server.ZooKeeperServerMain"


class ZooKeeper:
    """ZooKeeper for one cluster; its files lie below the cluster's ``directory``."""

    def __init__(self, plan: ClusterPlan, port: int, directory: Path, installation: Installation) -> None:
        self._plan = plan
        self._address = plan.nodes[0].address
        self._port = port
        self._directory = directory / "zookeeper"
        self._installation = installation
        self._process: OwnedProcess | None = None

    async def launch(self) -> None:
        """Wait until it takes connections.

        Raises:
            ProcessFailed: it ended, or took none in time.
        """
        self._directory.mkdir()
        file = self._directory / "zookeeper.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self._properties().items()))
        command = self._installation.command(self._plan, self._directory, _PROGRAM, str(file))
        name = f"zookeeper of {self._plan.name}"
        self._process = await OwnedProcess.start(name, command, self._directory / "zookeeper.log")
        await self._process.wait_for_port(self._address, self._port, _DEADLINE)

    async def kill(self) -> None:
        """Send SIGKILL; do nothing if it was never launched."""
        if self._process is not None:
            await self._process.kill()

    def _properties(self) -> dict[str, str]:
        return {
            "dataDir": str(self._directory / "data"),
            "clientPort": str(self._port),
            "clientPortAddress": self._address,
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
        }
