"""The bill of materials in CycloneDX 1.6 (ECMA-424): the components of the image, by the part that contains them."""

from collections.abc import Sequence
from dataclasses import dataclass

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from appliance.version import VERSION

_INDENT = 1
_BRINGS_JARS = "pyspark"


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
    made = Bom(metadata=BomMetaData(component=appliance), components=[*parts, *materials.java])
    made.register_dependency(appliance, parts)
    for spark in [part for part in materials.python if part.name == _BRINGS_JARS]:
        made.register_dependency(spark, materials.java)
    return JsonV1Dot6(made).output_as_string(indent=_INDENT)


DPKG_FORMAT = "${Package}\\t${Version}\\t${Architecture}\\n"
"""The format in which ``dpkg-query --show`` lists the packages for this module."""


def debian_packages(listed: str, release: str) -> list[Component]:
    """The packages that ``dpkg-query`` listed on the Debian ``release``, such as ``12``."""
    return [_component(line, release) for line in listed.splitlines()]


def _component(line: str, release: str) -> Component:
    name, version, architecture = line.split("\t")
    qualifiers = {"arch": architecture, "distro": f"debian-{release}"}
    purl = PackageURL("deb", "debian", name, version, qualifiers)
    return Component(name=name, version=version, bom_ref=str(purl), purl=purl)
