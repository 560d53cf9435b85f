"""Every manifest of the chart in all its options: a real API server takes it, and it fits the schemas of the oldest and
the newest Kubernetes that we name."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from testbed.kubernetes.node import Node
from tests.kubernetes.release import CHART

CHECKED_VERSIONS = ("1.29", "1.37")
NAMESPACE, ACCOUNT = "dry-run", "link-kafka-cloud-replicator"

OF_OPERATOR = {"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"}
"""The kinds of Prometheus's operator, whose definitions are not Kubernetes' own."""

EVERYTHING = {
    "podDisruptionBudget": {"enabled": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True},
    "imagePullSecrets": [{"name": "registry"}],
    "extraEnv": [{"name": "LOG_LEVEL", "value": "debug"}],
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "kafka", "operator": "Exists"}],
    "topologySpreadConstraints": [],
    "priorityClassName": "",
}
ANY_USER = {"podSecurityContext": dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"))}
OPTIONS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "source": ("source", {}),
    "source, everything": ("source", EVERYTHING | {"tunnel": {"replicas": 2}}),
    "source, a node's port": ("source", {"service": {"type": "NodePort", "nodePort": 31000}}),
    "source, inside the cluster": ("source", {"service": {"type": "ClusterIP"}}),
    "source, any user": ("source", ANY_USER),
    "source, no policy": ("source", {"networkPolicy": {"enabled": False}}),
    "source, a port of the system": ("source", {"settings": {"TUNNEL_PORT": 443}}),
    "destination": ("destination", {}),
    "destination, everything": ("destination", EVERYTHING | {"replicator": {"replicas": 2}}),
    "destination, executors": ("destination", {"executors": {"enabled": True, "cores": 2}}),
    "destination, executors, any user": ("destination", ANY_USER | {"executors": {"enabled": True}}),
    "destination, any user": ("destination", ANY_USER),
    "destination, without a page": ("destination", {"controlCenter": {"enabled": False}}),
    "destination, no tunnel": ("destination", {"settings": {"SOURCE_ROUTE": "direct"}}),
    "destination, a Secret": ("destination", {"existingSecret": {"name": "link"}}),
}


@pytest.fixture(scope="module")
def open_cluster(cluster: Node) -> Iterator[Node]:
    """The node with a namespace that admits restricted pods alone, and with the operator's kinds, of any content.

    The doctor's pod would be refused without its account.
    """
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}
    documents = [namespace, account, *(definition(kind, plural) for kind, plural in OF_OPERATOR.items())]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    cluster.kubectl("apply", "--filename", "-", given=listed)
    cluster.kubectl("wait", "--for=condition=established", "crd", "--all")
    yield cluster
    cluster.kubectl("delete", "--filename", "-", given=listed)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_api_server_takes_every_manifest_of_the_chart(open_cluster: Node, name: str, tmp_path: Path) -> None:
    text = rendered(open_cluster, name, tmp_path)
    options = ("--dry-run=server", "--warnings-as-errors", f"--namespace={NAMESPACE}")
    printed = open_cluster.kubectl("apply", *options, "--filename", "-", given=text)
    assert len(re.findall(r"\(server dry run\)$", printed, re.MULTILINE)) == len(documents(text))


@pytest.mark.parametrize("name", OPTIONS)
def test_every_manifest_fits_the_oldest_and_the_newest_kubernetes(cluster: Node, name: str, tmp_path: Path) -> None:
    for document in documents(rendered(cluster, name, tmp_path)):
        if document["kind"] not in OF_OPERATOR:
            for version in CHECKED_VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)


def test_the_checked_versions_are_those_that_the_chart_names() -> None:
    text = (CHART / "README.md").read_text()
    oldest, newest = CHECKED_VERSIONS
    assert f"Needs Kubernetes {oldest} or newer" in text
    assert re.search(rf"Tested with {newest};.*schemas of\s+{oldest} to {newest}", text, re.DOTALL)


def rendered(cluster: Node, name: str, directory: Path) -> str:
    """The manifests with these options, and the pod of an executor, of which Spark makes more."""
    side, values = OPTIONS[name]
    file = directory / "values.json"
    file.write_text(json.dumps(values))
    given = ["--values", str(CHART / "ci" / f"{side}-values.yaml"), "--values", str(file)]
    text = cluster.helm("template", "link", str(CHART), f"--namespace={NAMESPACE}", *given)
    executors = [
        yaml.safe_load(each["data"]["pod.yaml"]) for each in documents(text) if "pod.yaml" in each.get("data", {})
    ]
    for pod in executors:
        pod["metadata"]["name"] = "executor"
    return f"{text}\n---\n{yaml.safe_dump_all(executors)}"


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def definition(kind: str, plural: str) -> dict[str, Any]:
    group = "monitoring.coreos.com"
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": anything}],
        },
    }
