"""One direction of copying, as a user sets it up: a clone on each VM, the same settings, and two scripts."""

import asyncio
import json
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from appliance.settings.role import Role
from deploy.render.vm import CONTROL_CENTER_PORT, link_address
from tests.containers.clusters import SECONDS
from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import Side
from tests.containers.vpcs import Vpcs
from tests.support.docker_engine import Engine
from tests.support.image_inputs import LOCKS
from tests.support.settings import write_settings

CHECKOUT = Path(__file__).parents[2]
CLONED = (
    "appliance",
    "deploy",
    "bin",
    "templates",
    ".dockerignore",
    "Dockerfile",
    "docker-compose.yml",
    *LOCKS,
    "requirements-debian.lock",
    "requirements-prepare.lock",
    "setenv.sh.template",
)
COPY = f"{TOPIC}.copy"
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Service:
    """A container of the link, on the VM of one side."""

    link: "Link"
    side: Side
    name: str

    @property
    def engine(self) -> Engine:
        """The VM's Docker engine."""
        return self.link.vpcs.engines[self.side.name]

    @property
    def container(self) -> str:
        """The container's id."""
        return self.engine.compose(self.link.folder(self.side), "ps", "--quiet", self.name).strip()

    def inspected(self) -> dict[str, Any]:
        """The engine's description of the container."""
        [found] = json.loads(self.engine.docker("inspect", self.container))
        assert isinstance(found, dict)
        return found

    def inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the container."""
        return self.engine.run("docker", "exec", self.container, *command)

    def restart(self) -> None:
        """Restart the container as a user does."""
        self.engine.docker("restart", self.container)

    async def wait_until(self, status: str) -> None:
        """Wait until the engine reports this health status."""
        deadline = time.monotonic() + SECONDS
        while (found := self.inspected()["State"]["Health"]["Status"]) != status:
            assert time.monotonic() < deadline, f"{self.name} is {found}: {self.log()[-2000:]}"
            await asyncio.sleep(_POLL_SECONDS)

    def log(self) -> str:
        """The container's output."""
        return self.engine.docker("logs", self.container)


@dataclass(frozen=True, slots=True)
class Link:
    """A link from the cluster of one side to the other's."""

    vpcs: Vpcs
    source: Side
    destination: Side
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(33), repr=False)

    @property
    def name(self) -> str:
        """The link's name in the settings."""
        return f"{self.source.name}-{self.destination.name}"

    @property
    def image(self) -> str:
        """The image's name in docker-compose.yml."""
        return f"kafka-cloud-replicator:{self.name}"

    @property
    def services(self) -> tuple[Service, Service, Service]:
        """The link's containers, without its control center."""
        tunnel = Service(self, self.source, "tunnel")
        return tunnel, Service(self, self.destination, "gateway"), Service(self, self.destination, "replicator")

    @property
    def control_center(self) -> Service:
        """The control center."""
        return Service(self, self.destination, "control-center")

    @property
    def control_center_page(self) -> str:
        """The address of the control center on the destination VM."""
        return f"http://{link_address(self.name, Role.DESTINATION)}:{CONTROL_CENTER_PORT}/"

    def page(self, path: str = "") -> str:
        """A page of the control center, as a browser on the destination VM gets it."""
        return self.vpcs.page(self.destination, f"{self.control_center_page}{path}")

    async def wait_until_shown(self, **values: object) -> dict[str, Any]:
        """Wait until the control center's overview has these values of the link; return all."""
        deadline = time.monotonic() + SECONDS
        while not values.items() <= (card := json.loads(await asyncio.to_thread(self.page, "card.json"))).items():
            assert time.monotonic() < deadline, f"{values} expected: {card}"
            await asyncio.sleep(_POLL_SECONDS)
        assert isinstance(card, dict)
        return card

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that only the processes of the link may read."""
        return (self.secret, *(side.user.secret.reveal() for side in (self.source, self.destination)))

    def variables(self) -> dict[str, str]:
        """The link's setenv.sh, the same on both VMs."""
        domain = self.source.bootstrap.host.partition(".")[2]
        return {
            "SOURCE_CLUSTER_ID": self.source.name,
            "SOURCE_BROKER_SERVERS": str(self.source.bootstrap),
            "SOURCE_BROKER_PATTERN": f"*.{domain}:{self.source.bootstrap.port}",
            "SOURCE_API_KEY": self.source.user.key,
            "SOURCE_API_SECRET": self.source.user.secret.reveal(),
            "SOURCE_CA_FILE": str(self.vpcs.ca_file(self.source)),
            "DESTINATION_CLUSTER_ID": self.destination.name,
            "DESTINATION_BROKER_SERVERS": str(self.destination.bootstrap),
            "DESTINATION_API_KEY": self.destination.user.key,
            "DESTINATION_API_SECRET": self.destination.user.secret.reveal(),
            "DESTINATION_CA_FILE": str(self.vpcs.ca_file(self.destination)),
            "REPLICA_TOPICS_SOURCE_REGEX": ".*",
            "REPLICA_TOPICS_DEST_SUFFIX": "copy",
            "SOURCE_SIDE_TUNNEL_IP": self.source.vm,
            "DESTINATION_SIDE_TUNNEL_IP": self.destination.vm,
            "SHARED_SECRET": self.secret,
            "TUNNEL_RESOLVER": str(self.source.dns),
            "DNS_UPSTREAM": str(self.destination.dns),
        }

    def folder(self, side: Side) -> Path:
        """The link's folder on the VM of that side."""
        return self.vpcs.directory / f"{side.name}-vm" / f"kafka-cloud-replicator-{self.name}"

    def clone(self) -> None:
        """Create both folders, each with its setenv.sh."""
        for folder in (self.folder(self.source), self.folder(self.destination)):
            clone_into(folder, self.variables())

    def prepare(self) -> None:
        """Run both scripts, each on its VM."""
        for side in (self.source, self.destination):
            self.prepare_on(side)

    def prepare_on(self, side: Side) -> str:
        """Run the script of that side's VM; return the output."""
        script = "prepare_src_config.sh" if side is self.source else "prepare_dest_config.sh"
        return prepare_in(self.folder(side), script, self.vpcs, side)

    def up(self, side: Side) -> str:
        """Start the containers of that side; return the output."""
        return self.vpcs.engines[side.name].compose(self.folder(side), "up", "-d")

    def down(self, side: Side) -> str:
        """Stop and remove the containers of that side; return the output."""
        return self.vpcs.engines[side.name].compose(self.folder(side), "down")

    async def wait_until_copied(self) -> int:
        """Wait until the copy is as long as the original, and require that they are equal; return the number of
        records."""
        original = self.vpcs.records(self.source, TOPIC)
        deadline = time.monotonic() + SECONDS
        while COPY not in self.vpcs.topics(self.destination):
            assert time.monotonic() < deadline, f"no copy: {self._logs()}"
            await asyncio.sleep(_POLL_SECONDS)
        while _size(copied := self.vpcs.records(self.destination, COPY)) < _size(original):
            assert time.monotonic() < deadline, f"{_size(copied)} of {_size(original)} copied: {self._logs()}"
            await asyncio.sleep(_POLL_SECONDS)
        assert copied == original
        return _size(original)

    def _logs(self) -> str:
        return "\n".join(f"{service.name}: {service.log()[-1500:]}" for service in self.services)


def clone_into(folder: Path, variables: Mapping[str, str]) -> None:
    """Create a link's folder with its setenv.sh."""
    for name in CLONED:
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(CHECKOUT / name, folder / name)
    write_settings(folder / "setenv.sh", variables)


def prepare_in(folder: Path, script: str, vpcs: Vpcs, side: Side) -> str:
    """Run a prepare script on the VM of a side; return the output."""
    command = str(folder / "bin" / script)
    # The scripts' own Python environment is made outside, where there is a network.
    subprocess.run([command, "--help"], capture_output=True, env=vpcs.environment, check=True)
    return vpcs.machines[side.name].vm.say(command, environment=vpcs.environment)


def _size(partitions: list[list[object]]) -> int:
    return sum(map(len, partitions))
