"""A broker that is not in its cluster's plan: it joins, moves and leaves while the cluster runs."""

import contextlib
import socket
from pathlib import Path

from appliance.settings.target import Target
from testbed.broker import Broker
from testbed.cluster import Cluster
from testbed.plan import Node
from testbed.rehearsal import kafka_installation

_SECONDS = 30.0


class Guest:
    """``start`` gives its name for clients of the VPC listener; it keeps its log directory when it moves.

    Args:
        cluster: a running cluster.
        number: its node id, not used in the plan.
        address: its listening address.
    """

    def __init__(self, cluster: Cluster, number: int, address: str) -> None:
        self.number = number
        self.address = address
        self._cluster = cluster
        self._directory: Path = cluster.directory / f"guest{number}"
        self._broker: Broker | None = None

    async def start(self, target: Target) -> None:
        """Start it under this name and port, without waiting until it is ready."""
        if self._broker is None:
            self._directory.mkdir()
            node = Node(self.number, self.address, target.host)
            self._broker = Broker(self._cluster.plan, node, self._directory, await kafka_installation())
            self._broker.format(_property(self._host / "data" / "meta.properties", "cluster.id"))
        (self._directory / "server.properties").write_text(self._properties(target))
        await self._broker.launch()

    async def move(self, target: Target) -> None:
        """Stop it normally, so that the cluster admits it again at once, and start it under another name."""
        if self._broker is not None:
            await self._broker.process.stop(grace=_SECONDS)
        await self.start(target)

    async def kill(self) -> None:
        """Send SIGKILL; do nothing if it was never started."""
        if self._broker is not None:
            await self._broker.kill()

    @property
    def _host(self) -> Path:
        return self._cluster.broker(0).directory

    def _properties(self, target: Target) -> str:
        """The properties of the plan's only broker, changed for the guest."""
        home = f"HOME://{self.address}:{free_port_pair(self.address)[0]}"
        own = {
            "process.roles": "broker",
            "node.id": str(self.number),
            "listeners": f"{home},VPC://{self.address}:{target.port}",
            "advertised.listeners": f"{home},VPC://{target}",
            "log.dirs": str(self._directory / "data"),
        }
        lines = (self._host / "server.properties").read_text().splitlines()
        entries = dict(line.split("=", 1) for line in lines)
        return "".join(f"{name}={value}\n" for name, value in (entries | own).items())


def _property(path: Path, name: str) -> str:
    (value,) = (line.partition("=")[2] for line in path.read_text().splitlines() if line.startswith(f"{name}="))
    return value


def free_port_pair(address: str) -> tuple[int, int]:
    """Two free consecutive ports."""
    while True:
        with contextlib.suppress(OSError, OverflowError), socket.create_server((address, 0)) as first:
            port: int = first.getsockname()[1]
            with socket.create_server((address, port + 1)):
                return port, port + 1
