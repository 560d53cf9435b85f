"""A file that carries the image to a VM without internet: a tar archive of the image, its provenance and checksums."""

import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deploy.image.build import ImageError, docker
from deploy.image.normal import image_id, image_names
from deploy.image.provenance import subject

_IMAGE, _PROVENANCE, _SUMS = "image.tar.gz", "provenance.json", "SHA256SUMS"
_UNUSABLE = (OSError, EOFError, LookupError, TypeError, ValueError, RecursionError, tarfile.TarError, zlib.error)
_FASTER = 6
"""gzip's own default; the best one takes three times as long for a few MB."""


def pack(archive: Path, provenance: Mapping[str, Any], file: Path) -> None:
    """Write an image archive and its provenance into ``file``."""
    with tempfile.TemporaryDirectory(dir=file.parent) as name:
        folder = Path(name)
        with (
            archive.open("rb") as source,
            (folder / _IMAGE).open("wb") as target,
            gzip.GzipFile("", "wb", _FASTER, target, mtime=0) as compressed,
        ):
            shutil.copyfileobj(source, compressed)
        (folder / _PROVENANCE).write_text(json.dumps(provenance, indent=1) + "\n")
        sums = {name: _digest(folder / name) for name in (_IMAGE, _PROVENANCE)}
        (folder / _SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
        with tarfile.open(file, "w") as bundle:
            for name in (_SUMS, _PROVENANCE, _IMAGE):
                bundle.add(folder / name, name, filter=_plain)


def load(file: Path) -> str:
    """Check a file, and load its image into Docker; return the image's name and id.

    Raises:
        ImageError: it is no such file, a part is damaged, or its image is not the one of its provenance.
    """
    with tempfile.TemporaryDirectory(dir=file.parent) as directory:
        folder = Path(directory)
        try:
            provenance = _unpack(file, folder)
            archive = folder / "image.tar"
            with gzip.open(folder / _IMAGE) as source, archive.open("wb") as target:
                shutil.copyfileobj(source, target)
            found, wanted = image_id(archive), subject(provenance)
            names, name = image_names(archive), str(provenance["subject"][0]["name"])
        except _UNUSABLE as error:
            raise ImageError(f"{file} is damaged, or was not written by bin/image save: {error}") from error
        if found != wanted:
            raise ImageError(f"{file} has the image {found}, but the provenance of {wanted}")
        if [_short(each) for each in names] != [_short(name)]:
            raise ImageError(f"{file} has an image called {' and '.join(names)}, but the provenance of {name}")
        docker("load", "--quiet", "--input", str(archive))
    return f"{name} {found}"


def _short(name: str) -> str:
    """A name without what engines add to one without a registry, or leave out."""
    return name.removeprefix("docker.io/").removeprefix("library/").removeprefix("localhost/")


def _unpack(file: Path, folder: Path) -> dict[str, Any]:
    """Unpack the parts, compare them with their checksums, and return the provenance."""
    with tarfile.open(file, "r:") as bundle:
        for name in (_SUMS, _PROVENANCE, _IMAGE):
            source = bundle.extractfile(name)
            with (folder / name).open("wb") as target:
                shutil.copyfileobj(source or io.BytesIO(), target)
    sums = {name: digest for digest, name in map(str.split, (folder / _SUMS).read_text().splitlines())}
    for name in (_PROVENANCE, _IMAGE):
        if sums[name] != _digest(folder / name):
            raise ValueError(f"{name} has another checksum")
    provenance = json.loads((folder / _PROVENANCE).read_text())
    if not isinstance(provenance, dict):
        raise ValueError(f"{_PROVENANCE} is no statement")
    return provenance


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime, member.uid, member.gid, member.uname, member.gname, member.mode = 0, 0, 0, "", "", 0o644
    return member
