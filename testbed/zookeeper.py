"""The ZooKeeper of a demo cluster whose Kafka is older than KRaft: one process, on the first node's address."""

from pathlib import Path

from testbed.installation import Installation
from testbed.plan import ClusterPlan
from testbed.process import OwnedProcess

_DEADLINE = 90.0
_PROGRAM = "org.apache.zookeeper.server.ZooKeeperServerMain"


class ZooKeeper:
    """Keeps the metadata of one cluster below the cluster's ``directory``."""

    def __init__(self, plan: ClusterPlan, port: int, directory: Path, installation: Installation) -> None:
        self._plan = plan
        self._address = plan.nodes[0].address
        self._port = port
        self._directory = directory / "zookeeper"
        self._installation = installation
        self._process: OwnedProcess | None = None

    async def launch(self) -> None:
        """Returns when it takes connections.

        Raises:
            ProcessFailed: it ended, or did not take any in time.
        """
        self._directory.mkdir()
        file = self._directory / "zookeeper.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self._properties().items()))
        command = self._installation.command(self._plan, self._directory, _PROGRAM, str(file))
        name = f"zookeeper of {self._plan.name}"
        self._process = await OwnedProcess.start(name, command, self._directory / "zookeeper.log")
        await self._process.wait_for_port(self._address, self._port, _DEADLINE)

    async def kill(self) -> None:
        """SIGKILL; nothing when it was never launched."""
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
