"""The image: the first ``docker-compose up -d`` on one VM builds it, and a file carries it to the other."""

import os
import resource
import shutil
from pathlib import Path

import yaml

from tests.containers.base import base_archive, locked_files
from tests.containers.link import Link
from tests.containers.sites import Side

_BASE = "appliance-base"
_BUILD = {"build": {"context": ".", "args": {"BASE": _BASE, "PIP_NO_INDEX": "1"}}}
_DESCRIPTORS = 65536
"""The limit of open files in docker-compose.yml."""


def adapt(link: Link) -> None:
    """Write docker-compose.override.yml for this environment: no network, and fewer file descriptors."""
    source = {"tunnel": limits()}
    destination = {"gateway": _BUILD | limits(), "replicator": _BUILD, "control-center": _BUILD}
    for side, services in ((link.source, source), (link.destination, destination)):
        override = yaml.safe_dump({"services": {name: more for name, more in services.items() if more}})
        (link.folder(side) / "docker-compose.override.yml").write_text(override)


def furnish(link: Link, side: Side) -> None:
    """Put the files that the build would fetch into a folder and its engine."""
    link.vpcs.engines[side.name].docker("import", str(base_archive()), _BASE)
    folder = link.folder(side) / "wheels"
    folder.mkdir()
    for file in locked_files():
        _put(file, folder / file.name)


def carry(link: Link, archive: Path) -> None:
    """Carry the image from the destination VM to the source VM, in the new file ``archive``."""
    there, here = link.vpcs.engines[link.destination.name], link.vpcs.engines[link.source.name]
    there.docker("save", "--output", str(archive), link.image)
    here.docker("load", "--input", str(archive))


def _put(original: Path, path: Path) -> None:
    try:
        os.link(original, path)
    except OSError:  # another file system
        shutil.copyfile(original, path)


def limits() -> dict[str, dict[str, int]]:
    """The limit of open files: a machine that is itself a container may have a lower one, and cannot raise it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {"ulimits": {"nofile": hard}} if hard < _DESCRIPTORS else {}
