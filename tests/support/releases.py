"""Releases of the appliance: their sections in CHANGELOG.md, and their code as it was."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent.parent
CHANGELOG = CHECKOUT / "CHANGELOG.md"

_SECTION = re.compile(r"^## \[(?P<version>[0-9.]+)\](?P<rest>.*)$", re.MULTILINE)
_COMMIT = re.compile(r"^Commit `(?P<commit>[0-9a-f]{40})`$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the changelog. ``commit`` is empty while the version is not released."""

    version: str
    text: str

    @property
    def commit(self) -> str:
        """The commit whose code is this version."""
        found = _COMMIT.search(self.text)
        return found["commit"] if found else ""


@dataclass(frozen=True, slots=True)
class Release:
    """The code of a release. It runs in the Python environment of its own lock, as for a user."""

    version: str
    code: Path

    @property
    def program(self) -> tuple[str, ...]:
        """Its ``bin/appliance``."""
        return (str(self.code / "bin" / "appliance"),)

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its processes, with the Python that makes theirs."""
        return {**os.environ, "PYTHON": sys.executable}

    def install(self) -> "Release":
        """Make its Python environment, unless there is one; return this."""
        line = [*self.program, "source", "--env-file", "/nowhere/setenv.sh"]  # its help may need no environment
        made = subprocess.run(line, env=self.variables, capture_output=True, text=True)
        assert made.returncode == 2, made.stderr
        return self


def sections(changelog: str) -> list[Section]:
    """The sections, the newest first."""
    starts = list(_SECTION.finditer(changelog))
    ends = [*(each.start() for each in starts[1:]), len(changelog)]
    return [Section(each["version"], changelog[each.start() : end]) for each, end in zip(starts, ends, strict=True)]


def last_release() -> Section:
    """The section of the newest version that is released."""
    return next(each for each in sections(CHANGELOG.read_text()) if each.commit)


def archived(commit: str, directory: Path) -> Path:
    """Write the code of a commit into a new directory."""
    known = subprocess.run(["git", "-C", CHECKOUT, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True)
    assert known.returncode == 0, f"commit {commit} is not in this clone: git fetch --unshallow"
    directory.mkdir()
    archive = subprocess.run(["git", "-C", CHECKOUT, "archive", commit], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
    return directory
