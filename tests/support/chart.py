"""The Helm chart, rendered: no cluster is needed."""

import base64
import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from deploy.helm.__main__ import CHART
from testbed.kubernetes.tools import clients

Document = dict[str, Any]

TUNNEL = {
    "SOURCE_CLUSTER_ID": "orange",
    "DESTINATION_CLUSTER_ID": "grape",
    "SOURCE_BROKER_SERVERS": "b0.orange.example:9093,b1.orange.example:9095",
    "SOURCE_SIDE_TUNNEL_IP": "tunnel.orange.example",
    "DESTINATION_SIDE_TUNNEL_IP": "203.0.113.7",
    "SHARED_SECRET": 'jH2!it\'s $HOME `x` "q" #9 mT4zR8wK',
}
SOURCE: Mapping[str, Any] = {"side": "source", "settings": TUNNEL}
DESTINATION: Mapping[str, Any] = {
    "side": "destination",
    "dns": {"upstream": "10.96.0.10"},
    "settings": TUNNEL
    | {
        "SOURCE_API_KEY": "ours",
        "SOURCE_API_SECRET": "secret of orange",
        "DESTINATION_BROKER_SERVERS": "kafka.grape.svc:9094",
        "DESTINATION_API_KEY": "ours",
        "DESTINATION_API_SECRET": "secret of grape",
        "REPLICA_TOPICS_SOURCE_REGEX": r"orders\..*",
        "REPLICA_TOPICS_DEST_SUFFIX": "copy",
    },
}
SIDES = {"source": SOURCE, "destination": DESTINATION}


def helm_template(values: Mapping[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
    """Render the chart of the release ``link`` with these values; it may fail."""
    command = [str(clients() / "helm"), "template", "link", str(CHART), "--values", "-", *options]
    return subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False)


def rendered(values: Mapping[str, Any], *options: str) -> list[Document]:
    """The documents that it makes."""
    outcome = helm_template(values, *options)
    assert outcome.returncode == 0, outcome.stderr
    return [document for document in yaml.safe_load_all(outcome.stdout) if document]


def refusal(values: Mapping[str, Any]) -> str:
    """The text with which values are refused."""
    outcome = helm_template(values)
    assert outcome.returncode != 0
    return outcome.stderr


def changed(values: Mapping[str, Any], **settings: object) -> dict[str, Any]:
    """The values with other settings; None removes one."""
    merged = {**values["settings"], **settings}
    return {**values, "settings": {name: value for name, value in merged.items() if value is not None}}


def only(documents: list[Document], kind: str, name: str = "") -> Document:
    """The one document of this kind, whose name ends so."""
    (found,) = (each for each in documents if each["kind"] == kind and each["metadata"]["name"].endswith(name))
    return found


def pod_of(documents: list[Document]) -> Document:
    """The specification of the Deployment's pods."""
    specification: Document = only(documents, "Deployment")["spec"]["template"]["spec"]
    return specification


def containers(pod: Document) -> dict[str, Document]:
    """All containers of a pod by their names."""
    return {each["name"]: each for each in (*pod.get("initContainers", ()), *pod["containers"])}


def settings_files(documents: list[Document]) -> Iterator[tuple[str, str]]:
    """Each container's name, and its setenv.sh."""
    for name, content in only(documents, "Secret")["data"].items():
        yield name.removesuffix(".sh"), base64.b64decode(content).decode()
