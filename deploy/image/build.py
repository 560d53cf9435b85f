"""A build that gives the same image each time: ``docker build``, and then ``normal`` over what it has made."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.image.normal import normalise
from deploy.image.provenance import Image, Revision, statement

CHECKOUT = Path(__file__).parents[2]
UNKNOWN = 315532800
"""1980-01-01, the time of files that belong to no commit; zip files know none before."""


class ImageError(Exception):
    """A step failed; the text is one line for the user."""


def revision(checkout: Path = CHECKOUT) -> Revision:
    """The commit of the checkout, if its files are those of a commit."""
    git = ["git", "-C", str(checkout)]
    if shutil.which("git") is None:
        return Revision("", UNKNOWN)
    described = subprocess.run([*git, "log", "-1", "--format=%H %ct"], capture_output=True, text=True, check=False)
    if described.returncode:
        return Revision("", UNKNOWN)
    commit, time = described.stdout.split()
    status = [*git, "status", "--porcelain", "--untracked-files=normal"]  # whatever the user's own setting
    changed = subprocess.run(status, capture_output=True, text=True, check=True).stdout
    return Revision("" if changed else commit, int(time))


def build(folder: Path, name: str, made_from: Revision, arguments: Sequence[str], archive: Path) -> dict[str, object]:
    """Build the image from the files in ``folder``, and write it to ``archive``; return its provenance.

    Raises:
        ImageError: Docker failed.
    """
    label = f"org.opencontainers.image.revision={made_from.commit or 'unknown'}"
    words = [word for argument in arguments for word in ("--build-arg", argument)]
    docker("build", *words, "--label", label, "--tag", name, str(folder))
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
        saved = Path(directory) / "saved.tar"
        docker("save", "--output", str(saved), name)
        identifier = normalise(saved, archive, made_from.epoch)
    return statement(folder, Image(name, identifier, platform(name)), made_from, arguments)


def platform(name: str) -> str:
    """The platform of an image in Docker, such as ``linux/arm64``."""
    return said("image", "inspect", "--format", "{{.Os}}/{{.Architecture}}", name)


def size(name: str) -> int:
    """The size of an image in Docker, in bytes."""
    [found] = json.loads(said("image", "inspect", name))
    return int(found["Size"])


def docker(*arguments: str) -> None:
    """Run Docker, whose output the user sees."""
    _succeed(arguments, subprocess.run(["docker", *arguments], check=False).returncode)


def said(*arguments: str) -> str:
    """Run Docker; return what it prints."""
    outcome = subprocess.run(["docker", *arguments], stdout=subprocess.PIPE, text=True, check=False)
    _succeed(arguments, outcome.returncode)
    return outcome.stdout.strip()


def _succeed(arguments: Sequence[str], status: int) -> None:
    if status:
        raise ImageError(f"docker {arguments[0]} failed with status {status}")
