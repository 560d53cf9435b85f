"""The Debian packages of the image, Java among them."""

from cyclonedx.model.component import Component
from packageurl import PackageURL

DPKG_FORMAT = "${Package}\\t${Version}\\t${Architecture}\\n"
"""How ``dpkg-query --show`` lists them for this."""


def debian_packages(listed: str, release: str) -> list[Component]:
    """What ``dpkg-query`` has listed on the Debian ``release``, such as ``12``."""
    return [_component(line, release) for line in listed.splitlines()]


def _component(line: str, release: str) -> Component:
    name, version, architecture = line.split("\t")
    qualifiers = {"arch": architecture, "distro": f"debian-{release}"}
    purl = PackageURL("deb", "debian", name, version, qualifiers)
    return Component(name=name, version=version, bom_ref=str(purl), purl=purl)
