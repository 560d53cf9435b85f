"""docs/start/kubernetes.md, and the manifests for kubectl alone."""

import re
import subprocess

import pytest
import yaml

from deploy.helm.__main__ import CHART
from testbed.kubernetes.tools import clients
from tests.manifests import FOLDER, VALUES, manifests
from tests.support.chart import SIDES, containers, pod_of, rendered

PAGE = (CHART.parents[2] / "docs" / "start" / "kubernetes.md").read_text()


@pytest.mark.parametrize("side", VALUES)
def test_the_manifests_are_what_helm_makes_of_the_chart(side: str) -> None:
    assert (FOLDER / f"{side}.yaml").read_text() == manifests(side)


@pytest.mark.parametrize("side", SIDES)
def test_helm_finds_no_fault_in_the_chart(side: str) -> None:
    command = [clients() / "helm", "lint", "--strict", CHART, "--values", CHART / "ci" / f"{side}-values.yaml"]
    outcome = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout


def test_the_examples_of_the_page_are_values_of_the_chart() -> None:
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    ends = [block for block in blocks if "side" in block]
    others = [block for block in blocks if "side" not in block]
    assert [each["side"] for each in ends] == ["source", "destination"]
    for end in ends:
        example = yaml.safe_load((CHART / "ci" / f"{end['side']}-values.yaml").read_text())
        assert example["settings"] == end["settings"]
        assert example["files"] == end["files"]
        rendered(end)
    for block in others:
        rendered({**ends[1], **block})


def test_what_a_side_costs_is_what_its_containers_may_take() -> None:
    rows = dict(re.findall(r"^\| (source side|destination side)[^|]*\| (\d+) MiB", PAGE, re.MULTILINE))
    for side, values in SIDES.items():
        limits = [each["resources"]["limits"]["memory"] for each in containers(pod_of(rendered(values))).values()]
        assert int(rows[f"{side} side"]) == sum(int(limit.removesuffix("Mi")) for limit in limits)


def test_the_commands_of_the_page_name_what_there_is() -> None:
    plain = [document for path in FOLDER.glob("*.y*ml") for document in yaml.safe_load_all(path.read_text())]
    documents = [*plain, *(document for values in SIDES.values() for document in rendered(values))]
    kinds = {"deploy": "Deployment", "service": "Service"}
    known = {(each["kind"], each["metadata"]["name"]) for each in documents if each}
    for block in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL):
        own = [line for line in block.splitlines() if "kube-dns" not in line]
        for kind, name in re.findall(r"(deploy|service)[/ ]([a-z-]+)(?![\w/.-])", "\n".join(own)):
            assert (kinds[kind], name) in known
        for file in re.findall(r"-f (deploy/\S+)", block):
            assert (CHART.parents[2] / file).is_file()
