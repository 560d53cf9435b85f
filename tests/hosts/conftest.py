"""The wheel, built of this checkout and installed, for all tests of the suite."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.requirements import missing

CHECKOUT = Path(__file__).parents[2]
PACKED = ("pyproject.toml", "README.md", "LICENSE", "setenv.sh.template", "appliance", "deploy")
LOCKED = ("--no-deps", "--require-hashes", "--only-binary", ":all:")


def pytest_configure() -> None:
    if lacking := missing("hosts"):
        pytest.exit(lacking, returncode=1)


def environment(directory: Path, *arguments: str) -> Path:
    """The programs of a new environment with what pip installs by these arguments."""
    subprocess.run([sys.executable, "-I", "-m", "venv", directory], check=True)
    pip(directory, "install", *arguments)
    return directory / "bin"


def pip(directory: Path, *arguments: str, cwd: Path = CHECKOUT) -> None:
    line: Sequence[str] = [str(directory / "bin" / "pip"), "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(line, cwd=cwd, check=True)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made by the locked tool alone."""
    directory = tmp_path_factory.mktemp("wheel")
    copy = directory / "checkout"
    copy.mkdir()
    for name in PACKED:
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(CHECKOUT / name, copy / name)
    environment(directory / "tools", *LOCKED, "-r", "requirements-build.lock")
    pip(directory / "tools", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(directory), ".", cwd=copy)
    (made,) = directory.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and no package that it depends on."""
    directory = tmp_path_factory.mktemp("installed") / "environment"
    environment(directory, "--no-deps", "--no-index", str(wheel))
    return directory
