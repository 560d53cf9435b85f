"""The appliance's image as a file, built once on a machine for all suites that run containers.

It is kept in the user's cache under the hash of all files that the build reads. The build runs in a Docker engine of
its own, in a network namespace without a network: all that it needs was fetched before, by the locks.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from appliance.version import VERSION
from deploy.image.provenance import subject
from testbed.kept import kept
from tests.support.docker_engine import Engine, engine, sweep
from tests.support.image_inputs import CHECKOUT, LOCKS, base_archive, locked_files, tools_archive
from tests.support.namespace import namespaces

IMAGE = f"kafka-cloud-replicator:{VERSION}"
"""The name of the image in the archive."""

_READ = ("Dockerfile", ".dockerignore", "requirements-debian.lock", *LOCKS, "bin/image", "deploy/__init__.py")
_READ_FOLDERS = ("appliance", "deploy/image", "deploy/materials")
_KEPT_MAX = 4
"""Number of archives in the cache; older ones are removed."""


def image_archive() -> Path:
    """The image as ``docker save`` writes it. The first call after a change of its inputs builds it, in some minutes.

    Not for a coroutine, because it runs an event loop of its own. It needs root, and the programs of the suite
    ``containers``.
    """
    return _kept() / "image.tar"


def image_provenance() -> Path:
    """The provenance of the image in the archive."""
    [found] = _kept().glob("*.provenance.json")
    return found


def built_id() -> str:
    """The id of the image in the archive."""
    return subject(json.loads(image_provenance().read_text()))


def furnish(folder: Path, docker: Engine) -> list[str]:
    """Put what a build would fetch into its folder and its engine; return the build's arguments."""
    docker.docker("import", str(base_archive()), "appliance-base")
    docker.docker("import", str(tools_archive()), "appliance-tools")
    (folder / "wheels").mkdir()
    for file in locked_files():
        _put(file, folder / "wheels" / file.name)
    return ["BASE=appliance-base", "TOOLS=appliance-tools", "PIP_NO_INDEX=1"]


def _kept() -> Path:
    directory = kept("image", _inputs(), lambda directory: asyncio.run(_make(directory)))
    directory.touch()
    for old in sorted(_archives(), key=lambda path: -path.stat().st_mtime)[_KEPT_MAX:]:
        shutil.rmtree(old, ignore_errors=True)
    return directory


def _inputs() -> str:
    """Names and hashes of the files that the build reads, and the names of what is fetched for it."""
    files = [path for folder in _READ_FOLDERS for path in sorted((CHECKOUT / folder).rglob("*")) if path.is_file()]
    read = [*(CHECKOUT / name for name in _READ), *(path for path in files if "__pycache__" not in path.parts)]
    hashes = [f"{path.relative_to(CHECKOUT)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in read]
    return "\n".join([*hashes, base_archive().parent.name, *(path.name for path in locked_files())])


def _archives() -> Iterator[Path]:
    cache = base_archive().parents[1]
    return (path for path in cache.glob("image-*") if path.is_dir() and not path.suffix)


async def _make(directory: Path) -> None:
    sweep()
    with namespaces(["image"]) as [machine], build_context() as folder:
        async with engine(machine) as docker:
            arguments = [f"--build-arg={argument}" for argument in furnish(folder, docker)]
            await asyncio.to_thread(docker.say, str(folder / "bin" / "image"), "build", *arguments)
            await asyncio.to_thread(docker.docker, "save", "--output", str(directory / "image.tar"), IMAGE)
            [provenance] = (folder / "image").glob("*.provenance.json")
            shutil.copy2(provenance, directory / provenance.name)


@contextlib.contextmanager
def build_context() -> Iterator[Path]:
    """A copy of what the build reads, beside which ``furnish`` puts more."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        for read in _READ:
            (folder / read).parent.mkdir(exist_ok=True)
            shutil.copy2(CHECKOUT / read, folder / read)
        for read in _READ_FOLDERS:
            shutil.copytree(CHECKOUT / read, folder / read, ignore=shutil.ignore_patterns("__pycache__"))
        yield folder


def _put(original: Path, path: Path) -> None:
    try:
        os.link(original, path)
    except OSError:  # another file system
        shutil.copyfile(original, path)
