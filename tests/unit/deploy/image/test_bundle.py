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


def packed(directory: Path, identifier: str = "", name: str = "image:1") -> Path:
    """A file with a small image, and the provenance of it or of another one."""
    archive = directory / "image.tar"
    made = normalise(saved(directory / "saved", [layer(FILES)], "2026-01-01T00:00:00Z", "one"), archive, EPOCH)
    image = Image(name, identifier or made, "linux/amd64")
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


def test_case_1403_an_image_of_another_name_than_its_provenances_is_refused(tmp_path: Path) -> None:
    # It was loaded over any image that is called so, and the command named the provenance's.
    with pytest.raises(ImageError, match="has an image called image:1, but the provenance of registry:5000/image:1"):
        load(packed(tmp_path, name="registry:5000/image:1"))


@pytest.mark.parametrize("statement", ["[]", '{"subject": 1}', '{"subject": [1]}', '{"subject": [{"digest": []}]}'])
def test_case_1404_a_provenance_that_is_no_statement_is_refused_in_one_line(tmp_path: Path, statement: str) -> None:
    # Each was a traceback.
    made = json.loads(statement)
    archive = tmp_path / "image.tar"
    normalise(saved(tmp_path / "saved", [layer(FILES)], "2026-01-01T00:00:00Z", "one"), archive, EPOCH)
    pack(archive, made, tmp_path / "file")
    with pytest.raises(ImageError, match="not written by bin/image save"):
        load(tmp_path / "file")


def test_case_1405_a_member_that_is_a_link_to_itself_is_refused_in_one_line(tmp_path: Path) -> None:
    link = tarfile.TarInfo("SHA256SUMS")
    link.type, link.linkname = tarfile.SYMTYPE, "SHA256SUMS"
    with tarfile.open(tmp_path / "file", "w") as file:
        file.addfile(link)
    with pytest.raises(ImageError, match="not written by bin/image save"):
        load(tmp_path / "file")


@pytest.mark.parametrize("contents", [b"", b"no archive"])
def test_any_other_file_is_refused_in_one_line(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "file").write_bytes(contents)
    with pytest.raises(ImageError, match="not written by bin/image save"):
        load(tmp_path / "file")
