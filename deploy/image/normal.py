"""An image archive (``docker save``) without what differs from build to build: times, owners' names, orders, ids.

Two builds of the same contents become the same bytes, and one digest. Times after ``epoch`` become ``epoch``. A layer
in which nothing is newer is left as it is: such is the base's, which other images share.
"""

import copy
import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

_MANIFEST = "manifest.json"
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_XATTR = "SCHILY.xattr."
_CONFIG = ("User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "Labels", "StopSignal")
"""Of the image's configuration, the keys of OCI's specification; Docker adds others, such as the id of a parent."""


def normalise(archive: Path, result: Path, epoch: int) -> str:
    """Write ``archive`` anew as ``result``; return the image's id."""
    with tarfile.open(archive) as source, tarfile.open(result, "w", format=tarfile.PAX_FORMAT) as target:
        [image] = json.load(_file(source, _MANIFEST))
        config = json.load(_file(source, image["Config"]))
        layers = [_add_layer(target, _file(source, name), epoch) for name in image["Layers"]]
        text = _json(_configuration(config, layers, epoch))
        digest = hashlib.sha256(text).hexdigest()
        _add(target, f"{digest}.json", len(text), io.BytesIO(text), epoch)
        names = {"Config": f"{digest}.json", "RepoTags": image["RepoTags"], "Layers": [f"{one}.tar" for one in layers]}
        text = _json([names])
        _add(target, _MANIFEST, len(text), io.BytesIO(text), epoch)
    return f"sha256:{digest}"


def image_id(archive: Path) -> str:
    """The id of the image in an archive, computed from its contents.

    Raises:
        ValueError: a layer is another one than the image's configuration says.
    """
    with tarfile.open(archive) as source:
        [image] = json.load(_file(source, _MANIFEST))
        text = _file(source, image["Config"]).read()
        found = [f"sha256:{_digest(_file(source, name))}" for name in image["Layers"]]
    if found != json.loads(text)["rootfs"]["diff_ids"]:
        raise ValueError("a layer is not the one that the image names")
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def image_names(archive: Path) -> list[str]:
    """The names under which the image in an archive is loaded."""
    with tarfile.open(archive) as source:
        [image] = json.load(_file(source, _MANIFEST))
    return list(image["RepoTags"] or [])


def _digest(layer: IO[bytes]) -> str:
    """The digest of a layer's tar archive, which some engines save compressed."""
    packed = layer.read(len(_GZIP)) == _GZIP
    layer.seek(0)
    digest = hashlib.sha256()
    contents = gzip.GzipFile(fileobj=layer) if packed else layer
    while chunk := contents.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _configuration(config: Mapping[str, Any], layers: Sequence[str], epoch: int) -> dict[str, Any]:
    time = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kept = {key: config[key] for key in ("architecture", "os", "variant") if config.get(key)}
    history = [
        {"created": time} | {key: step[key] for key in ("created_by", "empty_layer") if step.get(key)}
        for step in config["history"]
    ]
    own = {key: config["config"][key] for key in _CONFIG if config["config"].get(key)}
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{layer}" for layer in layers]}
    return kept | {"created": time, "config": own, "rootfs": rootfs, "history": history}


def _add_layer(target: tarfile.TarFile, layer: IO[bytes], epoch: int) -> str:
    """Add a layer under the name of its digest; return this."""
    with tempfile.TemporaryFile() as made:
        _layer(layer, made, epoch)
        size = made.seek(0, io.SEEK_END)
        made.seek(0)
        digest = _digest(made)
        made.seek(0)
        _add(target, f"{digest}.tar", size, made, epoch)
    return digest


def _layer(layer: IO[bytes], made: IO[bytes], epoch: int) -> None:
    with tarfile.open(fileobj=layer) as source:
        members = source.getmembers()
        if all(member.mtime <= epoch for member in members):
            layer.seek(0)
            while chunk := layer.read(_CHUNK):
                made.write(chunk)
            return
        with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as target:
            for member, contents in _ordered(members):
                file = source.extractfile(contents) if member.isreg() else None
                target.addfile(_plain(member, contents, epoch), file)


def _ordered(members: Sequence[tarfile.TarInfo]) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarInfo]]:
    """The members by name, each with that of its contents. Of a file with several names, the first is no link."""
    first: dict[str, str] = {}
    by_name = {member.name: member for member in members}
    for name in sorted(by_name):
        member = by_name[name]
        contents = by_name[member.linkname] if member.islnk() else member
        if not contents.isreg():
            yield member, member
        elif contents.name in first:
            link = _copy(contents, name)
            link.type, link.linkname, link.size = tarfile.LNKTYPE, first[contents.name], 0
            yield link, contents
        else:
            first[contents.name] = name
            yield _copy(contents, name), contents


def _plain(member: tarfile.TarInfo, contents: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    plain = _copy(member, member.name)
    plain.mtime, plain.uname, plain.gname = min(int(member.mtime), epoch), "", ""
    plain.pax_headers = {key: text for key, text in contents.pax_headers.items() if key.startswith(_XATTR)}
    return plain


def _copy(member: tarfile.TarInfo, name: str) -> tarfile.TarInfo:
    copied = copy.copy(member)
    copied.name = name
    return copied


def _file(source: tarfile.TarFile, name: str) -> IO[bytes]:
    found = source.extractfile(name)
    if found is None:
        raise ValueError(f"{name} is no file")
    return found


def _add(target: tarfile.TarFile, name: str, size: int, contents: IO[bytes], epoch: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = size, epoch
    target.addfile(entry, contents)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
