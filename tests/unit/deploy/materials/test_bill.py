"""The bill of materials of packages, wheels and jars that are made for the test, checked with the library's schema."""

import hashlib
import json
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from appliance.version import VERSION
from deploy.materials.bill import Materials, bill, debian_packages, java_libraries
from deploy.materials.python import licences, python_packages
from tests.support.package_index import digest, entry, source, wheel

FROM_A_WHEEL = wheel("Some_Package", "1.2", {"some.py": ""})
ANOTHER_WHEEL = wheel("Some_Package", "1.2", {"some.py": "# for another machine\n"})
FROM_A_SOURCE = source("pyspark", "4.3.0", {"setup.py": ""})
LOCK = (
    "# made by a tool\n"
    + entry("some-package", "1.2", ANOTHER_WHEEL, FROM_A_WHEEL)
    + entry("pyspark", "4.3.0", FROM_A_SOURCE)
)
DEBIAN = f"""# snapshot
openssl=3.0.17-1~deb12u1 amd64 {"1" * 64}
openjdk-17-jre-headless=17.0.16+8-1~deb12u1 amd64 {"2" * 64}
"""
PACKAGES = "openssl\t3.0.17-1~deb12u2\tamd64\nopenjdk-17-jre-headless\t17.0.16+8-1~deb12u1\tamd64\n"


def installed(site: Path, name: str, version: str, metadata: str = "") -> None:
    directory = site / f"{name}-{version}.dist-info"
    directory.mkdir(parents=True)
    (directory / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{metadata}")


def jar(path: Path, *poms: tuple[str, str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for group, name, version in poms:
            text = f"#Generated\ngroupId={group}\nartifactId={name}\nversion={version}\n"
            archive.writestr(f"META-INF/maven/{group}/{name}/pom.properties", text)


@pytest.fixture
def text(tmp_path: Path) -> str:
    site, wheels = tmp_path / "site", tmp_path / "wheels"
    installed(site, "Some_Package", "1.2", "License-Expression: MIT OR Apache-2.0\n")
    installed(site, "pyspark", "4.3.0")
    wheels.mkdir()
    (wheels / "Some_Package-1.2-py3-none-any.whl").write_bytes(FROM_A_WHEEL)
    (wheels / "pyspark-4.3.0-py3-none-any.whl").write_bytes(wheel("pyspark", "4.3.0", {}))
    jars = site / "pyspark" / "jars"
    jar(jars / "netty-tcnative-2.0.Final-linux-x86_64.jar", ("io.netty", "netty-tcnative", "2.0.Final"))
    jar(jars / "shading-1.0.jar", ("org.inner", "inner", "9.9"), ("org.outer", "shading", "1.0"))
    jar(jars / "scala-library-2.13.18.jar")
    return bill(
        Materials(python_packages(site, wheels, LOCK), debian_packages(PACKAGES, "12", DEBIAN), java_libraries(jars))
    )


@pytest.fixture
def document(text: str) -> dict[str, Any]:
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def hashes(component: dict[str, Any]) -> list[str]:
    return [one["content"] for one in component.get("hashes", [])]


def test_it_is_valid_by_the_standards_schema(text: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_every_part_has_its_address_and_its_version(document: dict[str, Any]) -> None:
    assert {part.get("purl") for part in document["components"]} == {
        "pkg:pypi/some-package@1.2",
        "pkg:pypi/pyspark@4.3.0",
        "pkg:deb/debian/openssl@3.0.17-1~deb12u2?arch=amd64&distro=debian-12",
        "pkg:deb/debian/openjdk-17-jre-headless@17.0.16%2B8-1~deb12u1?arch=amd64&distro=debian-12",
        "pkg:maven/io.netty/netty-tcnative@2.0.Final?classifier=linux-x86_64",
        "pkg:maven/org.outer/shading@1.0",
        None,
    }
    [unnamed] = [part for part in document["components"] if "purl" not in part]
    assert (unnamed["name"], unnamed["version"]) == ("scala-library", "2.13.18")
    assert (document["metadata"]["component"]["name"], VERSION) == ("kafka-cloud-replicator", VERSION)


def test_a_packages_hash_is_that_of_the_file_it_came_from_as_the_lock_has_it(document: dict[str, Any]) -> None:
    of_packages = {part["name"]: hashes(part) for part in document["components"] if "pypi" in part.get("purl", "")}
    assert of_packages == {"some-package": [digest(FROM_A_WHEEL)], "pyspark": [digest(FROM_A_SOURCE)]}


def test_a_jars_hash_is_its_own(document: dict[str, Any], tmp_path: Path) -> None:
    jars = tmp_path / "site" / "pyspark" / "jars"
    found = {part["bom-ref"]: hashes(part) for part in document["components"] if part["bom-ref"].endswith(".jar")}
    assert found == {path.name: [hashlib.sha256(path.read_bytes()).hexdigest()] for path in jars.iterdir()}


def test_the_jars_come_with_spark_and_the_rest_with_the_appliance(document: dict[str, Any]) -> None:
    brought = {one["ref"]: set(one.get("dependsOn", [])) for one in document["dependencies"]}
    assert {name for name in brought["pkg:pypi/pyspark@4.3.0"] if name.endswith(".jar")} == {
        part["bom-ref"] for part in document["components"] if part["bom-ref"].endswith(".jar")
    }
    assert len(brought["kafka-cloud-replicator"]) == 4


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ("License-Expression: MIT OR Apache-2.0\nLicense: other\n", ["MIT OR Apache-2.0"]),
        ("License: BSD-3-Clause\n", ["BSD-3-Clause"]),
        ("License: BSD\nClassifier: License :: OSI Approved :: BSD License\n", ["BSD"]),
        ("License: Copyright\n        somebody\nClassifier: License :: OSI Approved :: BSD License\n", ["BSD License"]),
        ("Classifier: License :: OSI Approved\nClassifier: License :: OSI Approved :: MIT License\n", ["MIT License"]),
        ("", []),
    ],
)
def test_a_licence_is_what_the_package_says_in_the_best_words_it_has(
    tmp_path: Path, metadata: str, said: list[str]
) -> None:
    installed(tmp_path, "some", "1", metadata)
    found = licences(PathDistribution(tmp_path / "some-1.dist-info").metadata)
    assert [
        getattr(one, "id", None) or getattr(one, "name", None) or getattr(one, "value", None) for one in found
    ] == said


def test_a_package_that_the_lock_does_not_list_is_refused(tmp_path: Path) -> None:
    installed(tmp_path / "site", "stranger", "1")
    with pytest.raises(KeyError, match="stranger"):
        python_packages(tmp_path / "site", tmp_path, LOCK)


def test_a_debian_package_has_the_hash_of_the_lock_if_it_is_the_version_of_the_lock(document: dict[str, Any]) -> None:
    packages = {
        one["name"]: hashes(one) for one in document["components"] if one.get("purl", "").startswith("pkg:deb/")
    }
    assert packages == {"openssl": [], "openjdk-17-jre-headless": ["2" * 64]}


def test_case_1400_the_bill_of_the_same_materials_is_the_same_and_that_of_others_has_another_number() -> None:
    """Its time and a random number made each build of the image another one."""
    some, other = (
        Materials([], debian_packages(text, "12", DEBIAN), []) for text in (PACKAGES, PACKAGES + "a\t1\tall\n")
    )
    assert bill(some) == bill(some)
    assert json.loads(bill(some))["serialNumber"] != json.loads(bill(other))["serialNumber"]
