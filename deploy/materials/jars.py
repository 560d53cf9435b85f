"""The Java libraries in PySpark."""

import hashlib
import re
import zipfile
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.component import Component
from packageurl import PackageURL

_POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_FILE = re.compile(r"(?P<name>.+?)-(?P<version>\d.*)\.jar")


def java_libraries(directory: Path) -> list[Component]:
    """A component for each jar in ``directory``; without an address if the jar has no Maven metadata."""
    return [_component(path) for path in sorted(directory.glob("*.jar"))]


def _component(jar: Path) -> Component:
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
