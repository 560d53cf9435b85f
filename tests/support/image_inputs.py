"""The inputs of an image build without a network: a base of Debian with its packages, and the files of the locks."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from testbed.kept import kept

CHECKOUT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-build.lock", "requirements-materials.lock")
"""The lock files of the image build."""

_SUITE, _PYTHON = "bookworm", "3.11"
_PACKAGES = ("ca-certificates", "python3")
_TOOLS = ("python3-venv", "openjdk-17-jdk-headless", "binutils")
_NOT_IN_SLIM = tuple(f"usr/share/{name}" for name in ("doc", "info", "locale", "man"))
"""What Debian's image ``slim`` lacks, too."""


def base_archive() -> Path:
    """The base's files as a tar archive. The first call on a machine fetches them in a minute."""
    return _bases() / "base.tar"


def tools_archive() -> Path:
    """The same for the stage that builds, with its tools."""
    return _bases() / "tools.tar"


def locked_files() -> list[Path]:
    """The files that the locks list. The first call on a machine fetches them, half a gigabyte."""
    texts = [(CHECKOUT / lock).read_text() for lock in LOCKS]
    return sorted(kept("files", "\n".join([*texts, _PYTHON, platform.machine()]), _fetch).iterdir())


def _bases() -> Path:
    made_from = f"{_SUITE} {_PACKAGES} {_TOOLS} {_NOT_IN_SLIM} {platform.machine()}"
    return kept("base", made_from, _make_bases)


def _make_bases(directory: Path) -> None:
    root = directory / "root"
    _run("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE, str(root), _mirror())
    _pack(root, directory / "base.tar")
    # Java's package runs Java, which reads /proc; this mount ends with the command.
    install = (
        'mount -t proc proc "$0/proc" && export DEBIAN_FRONTEND=noninteractive && '
        'exec chroot "$0" apt-get install -qq --yes --no-install-recommends "$@"'
    )
    _run("unshare", "--mount", "sh", "-c", install, str(root), *_TOOLS)
    _pack(root, directory / "tools.tar")
    shutil.rmtree(root)


def _pack(root: Path, archive: Path) -> None:
    left_out = [f"--exclude=./{folder}/*" for folder in (*_NOT_IN_SLIM, "var/cache/apt", "var/lib/apt/lists")]
    _run("tar", "--directory", str(root), "--one-file-system", *left_out, "--create", "--file", str(archive), ".")


def _mirror() -> str:
    """The Debian mirror of this machine."""
    query = ["indextargets", "Created-By: Packages", "Origin: Debian", "Label: Debian", "--format", "$(REPO_URI)"]
    found = _run("apt-get", *query).split()
    if not found:
        raise RuntimeError("apt-get knows no mirror of Debian: apt-get update")
    return found[0]


def _fetch(directory: Path) -> None:
    """Download sources as pip does, with the build's own tools, because pip inspects a source before it keeps it."""
    build_lock = CHECKOUT / "requirements-build.lock"
    download = [sys.executable, "-I", CHECKOUT / "bin" / "environment.py", build_lock, "pip", "download", "--quiet"]
    hashed = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--no-binary=pyspark", "--no-build-isolation"]
    for lock in LOCKS:
        chosen = [f"--python-version={_PYTHON}", "--dest", directory, "-r", CHECKOUT / lock]
        _run(*map(str, [*download, *hashed, *chosen]))


def _run(*command: str) -> str:
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode:
        said = (outcome.stdout + outcome.stderr).strip().splitlines()[-5:]
        raise RuntimeError(f"{command[0]} failed with status {outcome.returncode}: {'; '.join(said)}")
    return outcome.stdout
