"""What the image is made from without a network: Debian with its packages as a base, and the wheels of the lock."""

import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.containers.kept import kept

LOCK = Path(__file__).parents[2] / "requirements.lock"

_SUITE, _PYTHON = "bookworm", "3.11"
_PACKAGES = "ca-certificates,openjdk-17-jre-headless,python3,python3-venv"
_SOURCE_ONLY = "pyspark"
"""What its authors publish without a wheel."""


def base_archive() -> Path:
    """The base's files as a tar archive; the first call on a machine fetches them, which takes a minute."""
    made_from = f"{_SUITE} {_PACKAGES} {platform.machine()}"
    return kept("base", made_from, _make_base) / "base.tar"


def wheels() -> list[Path]:
    """The wheels of what requirements.lock lists; the first call on a machine fetches them, half a gigabyte."""
    made_from = f"{LOCK.read_text()} {_PYTHON} {platform.machine()}"
    return sorted(kept("wheels", made_from, _fetch_wheels).glob("*.whl"))


def lock_with(found: list[Path]) -> str:
    """requirements.lock, which takes the wheel that was built here from the source whose hash is in it, too."""
    [built] = [wheel for wheel in found if wheel.name.startswith(f"{_SOURCE_ONLY}-")]
    with built.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return re.sub(rf"^{_SOURCE_ONLY}==.*\n", rf"\g<0>    --hash=sha256:{digest} \\\n", LOCK.read_text(), flags=re.M)


def _make_base(directory: Path) -> None:
    root = directory / "root"
    options = ["--variant=minbase", f"--include={_PACKAGES}"]
    _run("debootstrap", *options, _SUITE, str(root), _mirror())
    for unneeded in ("usr/share/doc", "usr/share/man", "var/cache/apt", "var/lib/apt/lists"):
        shutil.rmtree(root / unneeded)
    _run("tar", "--directory", str(root), "--one-file-system", "--create", "--file", str(directory / "base.tar"), ".")
    shutil.rmtree(root)


def _mirror() -> str:
    """Where this machine itself gets Debian from."""
    query = ["indextargets", "Created-By: Packages", "Origin: Debian", "Label: Debian", "--format", "$(REPO_URI)"]
    found = _run("apt-get", *query).split()
    if not found:
        raise RuntimeError("apt-get knows no mirror of Debian: apt-get update")
    return found[0]


def _fetch_wheels(directory: Path) -> None:
    entries = re.split(r"\n(?=\S)", LOCK.read_text())
    source = [entry for entry in entries if entry.startswith(f"{_SOURCE_ONLY}==")]
    others = [entry for entry in entries if entry not in source]
    fetch = ["download", "--dest", str(directory), "--only-binary=:all:", f"--python-version={_PYTHON}"]
    _pip(fetch, others)
    _pip(["wheel", "--wheel-dir", str(directory)], source)


def _pip(command: list[str], entries: list[str]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write("\n".join(entries) + "\n")
        requirements.flush()
        options = ["--quiet", "--no-deps", "--require-hashes", "-r", requirements.name]
        _run(sys.executable, "-m", "pip", *command, *options)


def _run(*command: str) -> str:
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode:
        said = (outcome.stdout + outcome.stderr).strip().splitlines()[-5:]
        raise RuntimeError(f"{command[0]} failed with status {outcome.returncode}: {'; '.join(said)}")
    return outcome.stdout
