"""The image: built on one VM by the first ``docker-compose up -d`` there, and brought to the other as a file."""

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
"""What docker-compose.yml lets a container open."""


def adapt(link: Link) -> None:
    """Tell Compose, in the way that it has for that, what is different here: no network, and fewer file descriptors."""
    source = {"tunnel": _limits()}
    destination = {"gateway": _BUILD | _limits(), "replicator": _BUILD}
    for side, services in ((link.source, source), (link.destination, destination)):
        override = yaml.safe_dump({"services": {name: more for name, more in services.items() if more}})
        (link.folder(side) / "docker-compose.override.yml").write_text(override)


def furnish(link: Link, side: Side) -> None:
    """Give a folder, and the engine there, what the build would fetch."""
    link.stage.engines[side.name].docker("import", str(base_archive()), _BASE)
    folder = link.folder(side) / "wheels"
    folder.mkdir()
    for file in locked_files():
        _put(file, folder / file.name)


def carry(link: Link, archive: Path) -> None:
    """Bring the image from the destination VM to the source VM, by way of the new file ``archive``."""
    there, here = link.stage.engines[link.destination.name], link.stage.engines[link.source.name]
    there.docker("save", "--output", str(archive), link.image)
    here.docker("load", "--input", str(archive))


def _put(original: Path, path: Path) -> None:
    try:
        os.link(original, path)
    except OSError:  # another file system
        shutil.copyfile(original, path)


def _limits() -> dict[str, dict[str, int]]:
    """A machine that is a container itself may have less, and not the right to give more."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {"ulimits": {"nofile": hard}} if hard < _DESCRIPTORS else {}
