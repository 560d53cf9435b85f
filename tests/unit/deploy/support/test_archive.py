"""The file of a bundle: whole or not there, and for its owner only."""

import stat
import tarfile
from pathlib import Path

import pytest

from appliance.errors import ApplianceError
from deploy.support.archive import written

FILES = {"README.txt": b"read me", "status.json": b"{}"}


def test_the_files_are_below_a_folder_of_the_bundles_name(tmp_path: Path) -> None:
    bundle = written(tmp_path, "support-link", FILES, 1_700_000_000)
    with tarfile.open(bundle) as archive:
        assert archive.getnames() == ["support-link/README.txt", "support-link/status.json"]
        assert {member.mode for member in archive.getmembers()} == {0o600}
        assert archive.extractfile("support-link/README.txt").read() == b"read me"


def test_nobody_but_the_owner_reads_it_and_nothing_else_is_left(tmp_path: Path) -> None:
    bundle = written(tmp_path, "support-link", FILES, 0)
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert bundle.name.startswith("support-link-")
    assert bundle.name.endswith(".tar.gz")
    assert list(tmp_path.iterdir()) == [bundle]


def test_two_of_one_second_are_two_files(tmp_path: Path) -> None:
    assert written(tmp_path, "support-link", FILES, 0) != written(tmp_path, "support-link", FILES, 0)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_is_named_and_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ApplianceError, match=r"^\S+: cannot write the bundle: No space left on device$"):
        written(tmp_path, "support-link", FILES, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(ApplianceError, match=r"^/none: cannot write the bundle: No such file or directory$"):
        written(Path("/none"), "support-link", FILES, 0)
