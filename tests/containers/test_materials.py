"""The image's bill of materials against the image's contents."""

import json
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from appliance.version import VERSION
from deploy.materials.bill import DPKG_FORMAT
from tests.containers.link import Link, Service

JARS = "/opt/venv/lib/python3.11/site-packages/pyspark/jars"
INSTALLED = "import importlib.metadata as m; print(*{f'{d.name}=={d.version}'.lower() for d in m.distributions()})"


@pytest.fixture(scope="module")
def replicator(link: Link) -> Service:
    *_, found = link.services
    return found


@pytest.fixture(scope="module")
def text(link: Link, replicator: Service) -> str:
    labels = json.loads(replicator.engine.docker("inspect", link.image))[0]["Config"]["Labels"]
    return replicator.inside("cat", labels["kafka-cloud-replicator.bill-of-materials"]).stdout


@pytest.fixture(scope="module")
def components(text: str) -> list[dict[str, Any]]:
    found = json.loads(text)["components"]
    assert isinstance(found, list)
    return found


def of_kind(components: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in components if one.get("purl", "").startswith(f"pkg:{kind}/")]


def test_the_bill_is_valid_by_the_standards_schema_and_of_this_release(text: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert json.loads(text)["metadata"]["component"]["version"] == VERSION


def test_it_lists_the_python_packages_of_the_image_and_no_others(
    replicator: Service, components: list[dict[str, Any]]
) -> None:
    listed = {f"{one['name']}=={one['version']}" for one in of_kind(components, "pypi")}
    there = set(replicator.inside("python", "-c", INSTALLED).stdout.replace("_", "-").split())
    assert listed == there
    assert not [one["name"] for one in of_kind(components, "pypi") if not (one.get("hashes") and one.get("licenses"))]


def test_it_lists_the_debian_packages_of_the_image_and_java(
    replicator: Service, components: list[dict[str, Any]]
) -> None:
    there = replicator.inside("dpkg-query", "--show", f"--showformat={DPKG_FORMAT}").stdout.splitlines()
    listed = {(one["name"], one["version"]) for one in of_kind(components, "deb")}
    [java] = listed - {tuple(line.split("\t")[:2]) for line in there}
    assert len(listed) == len(there) + 1
    assert java[0] == "openjdk-17-jre-headless"
    # Java's modules are linked anew from this package, which is not installed itself.
    assert java[1].partition("+")[0] in replicator.inside("java", "-version").stderr


def test_it_lists_every_jar_of_the_image_with_the_hash_it_has(
    replicator: Service, components: list[dict[str, Any]]
) -> None:
    there = replicator.inside("sh", "-c", f"cd {JARS} && sha256sum *").stdout.splitlines()
    jars = {one["bom-ref"]: one["hashes"][0]["content"] for one in components if one["bom-ref"].endswith(".jar")}
    assert jars == {name: digest for digest, name in (line.split() for line in there)}
    assert len(jars) > 150


def test_the_tools_of_the_build_are_not_in_the_image(replicator: Service) -> None:
    found = replicator.inside("sh", "-c", "ls -d /build* /packages.txt /opt/appliance/deploy")
    assert found.stdout == ""
    assert replicator.inside("python", "-c", "import cyclonedx").returncode != 0
    for module in ("pip", "setuptools"):
        assert f"No module named '{module}'" in replicator.inside("python", "-c", f"import {module}").stderr
