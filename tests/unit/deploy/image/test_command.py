"""``bin/image`` itself, as far as it needs no Docker."""

import subprocess
from pathlib import Path

import pytest

from deploy.image.build import CHECKOUT, UNKNOWN, revision
from deploy.image.provenance import Revision


def said(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """The exit code of ``bin/image`` in a folder, and what it says."""
    done = subprocess.run(
        [CHECKOUT / "bin" / "image", *arguments],
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_case_1401_no_file_beside_the_one_that_is_loaded_runs(tmp_path: Path) -> None:
    # Python imported argparse.py, or any other module, from the current directory.
    (tmp_path / "argparse.py").write_text("raise SystemExit('ran')")
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "__init__.py").write_text("raise SystemExit('ran')")
    (tmp_path / "file").write_text("no archive")
    code, text = said(tmp_path, "load", "file")
    assert (code, text.count("\n")) == (1, 1)
    assert text.startswith("bin/image load: file is damaged, or was not written by bin/image save: ")


def test_case_1402_an_older_python_is_refused_in_one_line(tmp_path: Path) -> None:
    # A traceback of an import said nothing of it.
    older = tmp_path / "python"
    older.write_text("#!/bin/sh\nexit 1\n")
    older.chmod(0o755)
    code, text = said(tmp_path, "load", "file", PYTHON=str(older))
    assert code == 2
    assert text == "bin/image: Python 3.11 or newer is needed: start again with PYTHON=python3.11 before the command\n"


def git(folder: Path, *arguments: str) -> None:
    own = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *own, *arguments], check=True, capture_output=True)


def test_case_1407_a_file_that_git_does_not_know_is_a_change_whatever_its_status_shows(tmp_path: Path) -> None:
    # With this setting of the user the file was in the image, and the provenance named the commit.
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "--message", "one")
    git(tmp_path, "config", "status.showUntrackedFiles", "no")
    assert revision(tmp_path).commit
    (tmp_path / "new.py").touch()
    assert not revision(tmp_path).commit


def test_case_1408_neither_git_nor_docker_nor_a_folder_is_missed_with_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = said(tmp_path, "load", "none/file")
    assert (code, text.count("\n")) == (1, 1)
    assert "No such file or directory" in text
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision(tmp_path) == Revision("", UNKNOWN)


def test_case_1409_an_image_without_a_tag_is_the_latest_and_a_port_is_no_tag(tmp_path: Path) -> None:
    # All images of that name were saved, which ended in a traceback.
    for name in ("none", "host:5000/none"):
        assert said(tmp_path, "save", "--name", name, "file") == (
            1,
            f"bin/image save: {name}:latest was not built here: bin/image build\n",
        )
