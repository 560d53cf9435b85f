"""A file with an image is refused unless it is whole; a whole one is loaded in tests/containers/test_image.py."""

import json
import re
import tarfile
from pathlib import Path

import pytest

from deploy.image.build import CHECKOUT, ImageError
from deploy.image.bundle import load, pack
from deploy.image.normal import normalise
from deploy.image.provenance import Image, Revision, statement
from tests.unit.deploy.image.test_normal import EPOCH, FILES, layer, saved


def packed(directory: Path, identifier: str = "") -> Path:
    """A file with a small image, and the provenance of it or of another one."""
    archive = directory / "image.tar"
    made = normalise(saved(directory / "saved", [layer(FILES)], "2026-01-01T00:00:00Z", "one"), archive, EPOCH)
    image = Image("image:1", identifier or made, "linux/amd64")
    pack(archive, statement(CHECKOUT, image, Revision("", EPOCH), []), directory / "file")
    return directory / "file"


def test_the_same_image_is_packed_into_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    assert packed(tmp_path / "1").read_bytes() == packed(tmp_path / "2").read_bytes()


def test_it_has_the_image_its_provenance_and_checksums(tmp_path: Path) -> None:
    with tarfile.open(packed(tmp_path)) as file:
        assert file.getnames() == ["SHA256SUMS", "provenance.json", "image.tar.gz"]
        provenance = file.extractfile("provenance.json")
        assert provenance is not None
        assert json.load(provenance)["predicateType"] == "https://slsa.dev/provenance/v1"


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    file = packed(tmp_path)
    file.write_bytes(re.sub(rb'"linux/amd64"', b'"linux/arm64"', file.read_bytes()))
    with pytest.raises(ImageError, match=r"damaged.*another checksum"):
        load(file)


def test_the_provenance_of_another_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="but the provenance of sha256:111"):
        load(packed(tmp_path, f"sha256:{'1' * 64}"))


@pytest.mark.parametrize("contents", [b"", b"no archive"])
def test_any_other_file_is_refused_in_one_line(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "file").write_bytes(contents)
    with pytest.raises(ImageError, match="not written by bin/image save"):
        load(tmp_path / "file")
