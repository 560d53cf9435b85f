"""A file that carries the image to a VM without internet: a tar archive of the image, its provenance and checksums."""

import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deploy.image.build import ImageError, docker
from deploy.image.normal import image_id
from deploy.image.provenance import subject

_IMAGE, _PROVENANCE, _SUMS = "image.tar.gz", "provenance.json", "SHA256SUMS"
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
    """Check a file, and load its image into Docker; return the image's name.

    Raises:
        ImageError: it is no such file, a part is damaged, or its image is not the one of its provenance.
    """
    with tempfile.TemporaryDirectory(dir=file.parent) as name:
        folder = Path(name)
        try:
            provenance = _unpack(file, folder)
            archive = folder / "image.tar"
            with gzip.open(folder / _IMAGE) as source, archive.open("wb") as target:
                shutil.copyfileobj(source, target)
            found, wanted = image_id(archive), subject(provenance)
        except (OSError, EOFError, KeyError, ValueError, tarfile.TarError) as error:
            raise ImageError(f"{file} is damaged, or was not written by bin/image save: {error}") from error
        if found != wanted:
            raise ImageError(f"{file} has the image {found}, but the provenance of {wanted}")
        docker("load", "--quiet", "--input", str(archive))
    return str(provenance["subject"][0]["name"])


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
    assert isinstance(provenance, dict)
    return provenance


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime, member.uid, member.gid, member.uname, member.gname, member.mode = 0, 0, 0, "", "", 0o644
    return member
