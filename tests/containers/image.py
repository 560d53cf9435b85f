"""The image on both VMs, and what docker-compose.override.yml changes in this environment."""

import resource

import yaml

from tests.containers.link import Link
from tests.support.image import IMAGE, image_archive

_DESCRIPTORS = 65536
"""The limit of open files in docker-compose.yml."""


def adapt(link: Link) -> None:
    """Write docker-compose.override.yml for this environment: fewer file descriptors."""
    for side, name in ((link.source, "tunnel"), (link.destination, "gateway")) if limits() else ():
        override = {"services": {name: limits()}}
        (link.folder(side) / "docker-compose.override.yml").write_text(yaml.safe_dump(override))


def load(link: Link) -> None:
    """Load this machine's archive of the image on both VMs."""
    for side in (link.source, link.destination):
        engine = link.vpcs.engines[side.name]
        engine.docker("load", "--input", str(image_archive()))
        engine.docker("tag", IMAGE, link.image)


def limits() -> dict[str, dict[str, int]]:
    """The limit of open files: a machine that is itself a container may have a lower one, and cannot raise it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {"ulimits": {"nofile": hard}} if hard < _DESCRIPTORS else {}
