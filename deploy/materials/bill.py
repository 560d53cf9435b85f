"""The bill of materials in CycloneDX 1.6 (ECMA-424): the components of the image, by the part that contains them.

The Debian packages and the Java libraries in PySpark are made here, the Python packages in ``python``.
"""

import hashlib
import json
import re
import uuid
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from appliance.version import VERSION

_INDENT = 1
_BRINGS_JARS = "pyspark"
_POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_FILE = re.compile(r"(?P<name>.+?)-(?P<version>\d.*)\.jar")


@dataclass(frozen=True, slots=True)
class Materials:
    """The parts, by their origin."""

    python: Sequence[Component]
    debian: Sequence[Component]
    java: Sequence[Component]


def bill(materials: Materials) -> str:
    """The bill as JSON."""
    appliance = Component(
        name="kafka-cloud-replicator",
        version=VERSION,
        type=ComponentType.APPLICATION,
        bom_ref="kafka-cloud-replicator",
        licenses=[LicenseFactory().make_with_id("Apache-2.0")],
    )
    parts = [*materials.python, *materials.debian]
    bom = Bom(metadata=BomMetaData(component=appliance), components=[*parts, *materials.java])
    bom.register_dependency(appliance, parts)
    for spark in [part for part in materials.python if part.name == _BRINGS_JARS]:
        bom.register_dependency(spark, materials.java)
    return _always_the_same(JsonV1Dot6(bom).output_as_string())


def _always_the_same(text: str) -> str:
    """The bill without the time of its making; its serial number, otherwise a random one, follows from its contents."""
    made = json.loads(text)
    del made["metadata"]["timestamp"], made["serialNumber"]
    contents = json.dumps(made, sort_keys=True)
    return json.dumps(made | {"serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, contents).urn}, indent=_INDENT)


DPKG_FORMAT = "${Package}\\t${Version}\\t${Architecture}\\n"
"""The format in which ``dpkg-query --show`` lists the packages for this module."""


def debian_packages(listed: str, release: str, lock: str) -> list[Component]:
    """The packages that ``dpkg-query`` listed on the Debian ``release``, such as ``12``.

    They have the hashes of the lock file's text ``lock``, if their versions are those of the lock.
    """
    entries = [line.split(" ") for line in lock.splitlines() if not line.startswith("#")]
    digests = {(package, architecture): digest for package, architecture, digest in entries}
    rows = [line.split("\t") for line in listed.splitlines()]
    # A package for all architectures is in the lock under each of them.
    own = next((architecture for _, _, architecture in rows if architecture != "all"), "")
    return [_component(row, release, digests.get((f"{row[0]}={row[1]}", own))) for row in rows]


def _component(row: Sequence[str], release: str, digest: str | None) -> Component:
    name, version, architecture = row
    qualifiers = {"arch": architecture, "distro": f"debian-{release}"}
    purl = PackageURL("deb", "debian", name, version, qualifiers)
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else None
    return Component(name=name, version=version, bom_ref=str(purl), purl=purl, hashes=hashes)


def java_libraries(directory: Path) -> list[Component]:
    """A component for each jar in ``directory``; without an address if the jar has no Maven metadata."""
    return [_jar(path) for path in sorted(directory.glob("*.jar"))]


def _jar(jar: Path) -> Component:
    name, version, purl = _identity(jar)
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    return Component(
        name=name,
        version=version,
        group=purl.namespace if purl else None,
        bom_ref=jar.name,
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
    )


def _identity(jar: Path) -> tuple[str, str | None, PackageURL | None]:
    """Name, version and address; the file's own name decides, because a jar may also contain other libraries."""
    with zipfile.ZipFile(jar) as archive:
        poms = [_properties(archive.read(name).decode()) for name in archive.namelist() if _POM.fullmatch(name)]
    for pom in poms:
        group, name, version = (pom.get(key) for key in ("groupId", "artifactId", "version"))
        if name and version and f"{jar.stem}-".startswith(f"{name}-{version}-"):
            classifier = jar.stem[len(f"{name}-{version}-") :]
            qualifiers = {"classifier": classifier} if classifier else None
            return name, version, PackageURL("maven", group, name, version, qualifiers)
    named = _FILE.fullmatch(jar.name)
    return (named["name"], named["version"], None) if named else (jar.stem, None, None)


def _properties(text: str) -> dict[str, str]:
    """A Java properties file, as Maven writes it."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}
