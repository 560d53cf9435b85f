"""``bin/image`` itself, as far as it needs no Docker."""

import subprocess
from pathlib import Path

from deploy.image.build import CHECKOUT


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
