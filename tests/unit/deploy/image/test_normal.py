"""Two builds of the same contents become one image, bit for bit."""

import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from deploy.image.normal import image_id, normalise

EPOCH = 1_700_000_000


@dataclass(frozen=True)
class Entry:
    """A member of a layer."""

    name: str
    text: bytes = b""
    kind: bytes = tarfile.REGTYPE
    target: str = ""
    mtime: float = EPOCH + 5.5
    xattr: str = ""


FILES = (
    Entry("opt", kind=tarfile.DIRTYPE),
    Entry("opt/a", b"one"),
    Entry("opt/b", kind=tarfile.LNKTYPE, target="opt/a"),
    Entry("opt/c", kind=tarfile.SYMTYPE, target="a"),
    Entry("opt/old", b"two", mtime=1000),
    Entry("opt/ping", b"three", xattr="cap"),
)
"""A layer as one engine saves it."""

OTHERWISE = (
    replace(FILES[5], mtime=EPOCH + 90),
    replace(FILES[1], name="opt/b", mtime=EPOCH + 90),
    replace(FILES[2], name="opt/a", target="opt/b"),
    *(replace(entry, mtime=EPOCH + 91) for entry in (FILES[3], FILES[0])),
    FILES[4],
)
"""The same in another order, at another time, and with the other name of a file as the first."""


def layer(entries: Sequence[Entry]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as target:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.type, info.linkname, info.size, info.mtime = entry.kind, entry.target, len(entry.text), entry.mtime
            info.uname = "somebody"
            if entry.xattr:
                info.pax_headers = {"SCHILY.xattr.security.capability": entry.xattr}
            target.addfile(info, io.BytesIO(entry.text))
    return made.getvalue()


def saved(path: Path, layers: Sequence[bytes], created: str, container: str) -> Path:
    """An archive as ``docker save`` writes it."""
    config = {
        "architecture": "arm64",
        "os": "linux",
        "created": created,
        "container": container,
        "config": {"Cmd": ["run"], "Image": container, "Labels": {"version": "1"}, "User": ""},
        "history": [{"created": created, "created_by": "COPY all"}, {"created": created, "empty_layer": True}],
        "rootfs": {"type": "layers", "diff_ids": []},
    }
    names = [f"{container}{number}/layer.tar" for number, _ in enumerate(layers)]
    manifest = [{"Config": "config.json", "RepoTags": ["image:1"], "Layers": names}]
    files = {"config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()}
    with tarfile.open(path, "w") as target:
        for name, text in (files | dict(zip(names, layers, strict=True))).items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            target.addfile(info, io.BytesIO(text))
    return path


def test_two_archives_of_the_same_contents_become_the_same_bytes(tmp_path: Path) -> None:
    first = saved(tmp_path / "1", [layer(FILES)], "2026-01-01T00:00:00Z", "one")
    second = saved(tmp_path / "2", [layer(OTHERWISE)], "2026-02-02T00:00:00Z", "two")
    assert normalise(first, tmp_path / "first", EPOCH) == normalise(second, tmp_path / "second", EPOCH)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize(
    "changed",
    [replace(FILES[1], text=b"other"), replace(FILES[1], name="opt/d"), replace(FILES[4], mtime=1001)],
    ids=["text", "name", "time before the epoch"],
)
def test_other_contents_become_another_image(tmp_path: Path, changed: Entry) -> None:
    one = saved(tmp_path / "1", [layer([FILES[0], FILES[1], FILES[4]])], "2026-01-01T00:00:00Z", "one")
    old = FILES[4] if changed.name != FILES[4].name else changed
    new = FILES[1] if changed.name == FILES[4].name else changed
    other = saved(tmp_path / "2", [layer([FILES[0], new, old])], "2026-01-01T00:00:00Z", "one")
    assert normalise(one, tmp_path / "first", EPOCH) != normalise(other, tmp_path / "second", EPOCH)


def test_files_links_and_capabilities_stay(tmp_path: Path) -> None:
    normalise(saved(tmp_path / "1", [layer(OTHERWISE)], "2026-01-01T00:00:00Z", "one"), tmp_path / "made", EPOCH)
    with tarfile.open(tmp_path / "made") as made:
        [image] = json.loads(made.extractfile("manifest.json").read())  # type: ignore[union-attr]
        with tarfile.open(fileobj=made.extractfile(image["Layers"][0])) as contents:
            members = {member.name: member for member in contents}
            assert contents.extractfile("opt/b").read() == b"one"  # type: ignore[union-attr]
    assert list(members) == sorted(members) == sorted(entry.name for entry in FILES)
    assert members["opt/c"].linkname == "a"
    assert members["opt/ping"].pax_headers["SCHILY.xattr.security.capability"] == "cap"
    assert {member.mtime for member in members.values()} == {1000, EPOCH}


def test_a_layer_of_the_base_stays_as_it_is_so_that_other_images_share_it(tmp_path: Path) -> None:
    base = layer([replace(entry, mtime=1000.5) for entry in reversed(FILES[:2])])
    normalise(saved(tmp_path / "1", [base, layer(FILES)], "2026-01-01T00:00:00Z", "one"), tmp_path / "made", EPOCH)
    with tarfile.open(tmp_path / "made") as made:
        [image] = json.loads(made.extractfile("manifest.json").read())  # type: ignore[union-attr]
        assert made.extractfile(image["Layers"][0]).read() == base  # type: ignore[union-attr]


def test_the_id_is_computed_from_all_contents_of_an_archive(tmp_path: Path) -> None:
    made = tmp_path / "made"
    identifier = normalise(saved(tmp_path / "1", [layer(FILES)], "2026-01-01T00:00:00Z", "one"), made, EPOCH)
    assert image_id(made) == identifier
    made.write_bytes(made.read_bytes().replace(b"three", b"THREE"))
    with pytest.raises(ValueError, match="not the one that the image names"):
        image_id(made)
