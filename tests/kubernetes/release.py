"""Both ends of a link as releases of the Helm chart, each in a namespace of its own."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testbed.kubernetes.layout import ADDRESS
from testbed.kubernetes.node import Node
from tests.containers.programs.vpc import TOPIC
from tests.containers.sites import Side
from tests.kubernetes.brokers import Brokers
from tests.support.image import IMAGE

CHECKOUT = Path(__file__).parents[2]
CHART = CHECKOUT / "deploy" / "helm" / "kafka-cloud-replicator"
_WAIT = ("--wait", "--timeout=4m")
_ELSEWHERE = "10.77.0.2"
"""The other side's address in the settings, which refuse one for both; here both sides are on one node."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of the chart in the namespace of its name; its values are kept in the clusters' directory."""

    brokers: Brokers
    name: str
    values: Mapping[str, Any] = field(repr=False)

    @property
    def node(self) -> Node:
        """The node that runs it."""
        return self.brokers.node

    @property
    def workload(self) -> str:
        """Its Deployment, as kubectl's argument."""
        return f"deployment/{self.name}-kafka-cloud-replicator"

    def install(self, *options: str) -> str:
        """Install it; return what Helm prints."""
        return self._helm("install", *options, str(CHART), "--values", self._values_file())

    def upgrade(self, **settings: str) -> "Release":
        """Change settings; return the release with them."""
        changed = replace(self, values={**self.values, "settings": {**self.values["settings"], **settings}})
        changed._helm("upgrade", *_WAIT, str(CHART), "--values", changed._values_file())
        return changed

    def rollback(self) -> None:
        """Go back to the values before the last upgrade."""
        self._helm("rollback", *_WAIT)

    def test(self) -> str:
        """Run the doctor; return what it prints."""
        return self._helm("test", "--logs")

    def uninstall(self) -> None:
        """Uninstall it, and wait until all is gone."""
        self._helm("uninstall", *_WAIT)
        self.kubectl("wait", "--for=delete", "pods", "--all", "--timeout=60s")

    def kubectl(self, *arguments: str, given: str = "") -> str:
        """Run ``kubectl`` in its namespace."""
        return self.node.kubectl("--namespace", self.name, *arguments, given=given)

    def kill(self) -> None:
        """Kill its pods at once."""
        self.kubectl(
            "delete", "pod", "--selector", f"app.kubernetes.io/instance={self.name}", "--force", "--grace-period=0"
        )

    def settings_file(self) -> str:
        """The setenv.sh of its pod."""
        return self.kubectl("exec", self.workload, "--", "cat", "/etc/appliance/setenv.sh")

    def objects(self) -> set[str]:
        """All objects in its namespace, but events."""
        kinds = self.kubectl("api-resources", "--verbs=list", "--namespaced", "--output=name").split()
        listed = ",".join(kind for kind in kinds if not kind.startswith("events"))
        return set(self.kubectl("get", listed, "--output=name").split())

    def _helm(self, action: str, *arguments: str) -> str:
        return self.node.helm(action, self.name, f"--namespace={self.name}", *arguments)

    def _values_file(self) -> str:
        path = self.brokers.directory / f"{self.name}-values.json"
        path.touch(0o600)
        path.write_text(json.dumps(self.values))
        return str(path)


@dataclass(frozen=True, slots=True)
class Link:
    """A link: its name, its port on the node, and further values of the destination's release.

    ``name`` also ends the names of its copies.
    """

    name: str
    port: int
    source: Side
    destination: Side
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def copy(self) -> str:
        """The copy of the topic."""
        return f"{TOPIC}.{self.name}"

    def settings(self) -> dict[str, str]:
        """The settings of both ends, with a new secret."""
        source, destination = self.source, self.destination
        return {
            "SOURCE_CLUSTER_ID": f"{source.name}-{self.name}",
            "SOURCE_BROKER_SERVERS": str(source.bootstrap),
            "SOURCE_BROKER_PATTERN": f"*.{source.bootstrap.host.partition('.')[2]}:{source.bootstrap.port}",
            "SOURCE_API_KEY": source.user.key,
            "SOURCE_API_SECRET": source.user.secret.reveal(),
            "DESTINATION_CLUSTER_ID": destination.name,
            "DESTINATION_BROKER_SERVERS": str(destination.bootstrap),
            "DESTINATION_API_KEY": destination.user.key,
            "DESTINATION_API_SECRET": destination.user.secret.reveal(),
            "REPLICA_TOPICS_SOURCE_REGEX": TOPIC,
            "REPLICA_TOPICS_DEST_SUFFIX": self.name,
            "SOURCE_SIDE_TUNNEL_IP": ADDRESS,
            "DESTINATION_SIDE_TUNNEL_IP": _ELSEWHERE,
            "TUNNEL_PORT": str(self.port),
            "SHARED_SECRET": secrets.token_urlsafe(33),
        }


def releases(brokers: Brokers, link: Link) -> tuple[Release, Release]:
    """Both ends of a link, the source's first, with the brokers' certificate authorities in their namespaces."""
    name, tag = IMAGE.split(":")
    image = {"repository": name, "tag": tag, "pullPolicy": "Never"}
    settings = link.settings()
    resolved = settings | {"TUNNEL_RESOLVER": str(link.source.dns)}
    service = {"type": "NodePort", "nodePort": link.port}
    here = {"side": "source", "image": image, "service": service, "settings": resolved}
    sides = {"SOURCE_CA_FILE": link.source, "DESTINATION_CA_FILE": link.destination}
    files = {variable: {"configMap": "authorities", "key": side.name} for variable, side in sides.items()}
    there = {"side": "destination", "image": image, "settings": settings, "files": files, **link.values}
    ends = Release(brokers, f"{link.name}-source", here), Release(brokers, f"{link.name}-destination", there)
    for end in ends:
        end.node.kubectl("create", "namespace", end.name)
        authorities = [f"--from-file={side.name}={brokers.ca_file(side)}" for side in sides.values()]
        end.kubectl("create", "configmap", "authorities", *authorities)
        end.kubectl("label", "namespace", end.name, "pod-security.kubernetes.io/enforce=restricted")
    return ends
