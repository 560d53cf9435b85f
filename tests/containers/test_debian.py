"""Debian's packages of the image come in the versions and with the hashes of the lock; apt itself installs them."""

import hashlib
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from deploy.image.build import CHECKOUT
from deploy.image.lock import ARCHITECTURES, wanted
from tests.support.image_inputs import base_archive

LOCK = CHECKOUT / "requirements-debian.lock"
ENTRY = re.compile(r"(?P<name>[a-z0-9.+-]+)=(?P<version>\S+) (?P<architecture>\w+) (?P<digest>[0-9a-f]{64})")
CONTROL = "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a\nDescription: a\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A Debian system whose only mirror is the folder /mirror."""
    system = tmp_path / "root"
    with tarfile.open(base_archive()) as archive:
        archive.extractall(system, filter="tar")
    (system / "mirror").mkdir()
    (system / "etc" / "apt" / "sources.list").write_text("deb [trusted=yes] copy:/mirror ./\n")
    (system / "opt" / "debian").mkdir()
    (system / "opt" / "debian" / "debian.sh").write_bytes((CHECKOUT / "deploy" / "image" / "debian.sh").read_bytes())
    return system


def offer(root: Path, version: str) -> str:
    """Put a version of the package ``tool`` on the mirror; return its hash."""
    made = root / "made" / "DEBIAN"
    made.mkdir(parents=True, exist_ok=True)
    control = CONTROL.format(name="tool", version=version)
    (made / "control").write_text(control)
    file = root / "mirror" / f"tool_{version}_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", made.parent, file], capture_output=True, check=True)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    listed = f"{control}Filename: ./{file.name}\nSize: {file.stat().st_size}\nSHA256: {digest}\n\n"
    with (root / "mirror" / "Packages").open("a") as packages:
        packages.write(listed)
    return digest


def install(root: Path, version: str, digest: str) -> subprocess.CompletedProcess[str]:
    """Install ``tool`` by a lock that names this version and hash."""
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    lock = f"# snapshot 20260101T000000Z\ntool={version} {architecture} {digest}\n"
    (root / "opt" / "debian" / LOCK.name).write_text(lock)
    command = ["chroot", str(root), "sh", "/opt/debian/debian.sh", "tool"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def installed(root: Path) -> str:
    query = ["chroot", str(root), "dpkg-query", "--show", "--showformat=${Version}", "tool"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout


def test_the_version_of_the_lock_is_installed_though_there_is_a_newer_one(root: Path) -> None:
    digest = offer(root, "1.0+deb12u1")
    offer(root, "2.0")
    outcome = install(root, "1.0+deb12u1", digest)
    assert (outcome.returncode, installed(root)) == (0, "1.0+deb12u1"), outcome.stderr
    assert "lock" not in outcome.stderr


def test_a_package_with_another_hash_is_not_installed(root: Path) -> None:
    offer(root, "1.0")
    outcome = install(root, "1.0", "0" * 64)
    assert outcome.returncode == 1
    assert "tool=1.0 is not the file of the lock" in outcome.stderr
    assert installed(root) == ""


def test_a_version_that_the_mirror_no_longer_has_gives_the_newest_and_a_line_that_says_so(root: Path) -> None:
    offer(root, "2.0")
    outcome = install(root, "1.0", "0" * 64)
    assert (outcome.returncode, installed(root)) == (0, "2.0"), outcome.stderr
    [line] = [line for line in outcome.stderr.splitlines() if "lock" in line]
    assert "tool=2.0" in line
    assert "SNAPSHOT=yes" in line


def test_the_lock_has_every_package_of_the_dockerfile_for_both_architectures() -> None:
    first, snapshot, *lines = LOCK.read_text().splitlines()
    assert re.fullmatch(r"# snapshot \d{8}T\d{6}Z", snapshot)
    entries = [ENTRY.fullmatch(line) for line in lines]
    assert first.startswith("#")
    assert all(entries)
    locked = {(entry["name"], entry["architecture"]) for entry in entries if entry}
    assert len(locked) == len(lines)
    packages = wanted((CHECKOUT / "Dockerfile").read_text())
    assert {(name, architecture) for name in packages for architecture in ARCHITECTURES} <= locked
