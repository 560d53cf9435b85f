"""``python -m deploy.image.lock``: renews ``requirements-debian.lock`` from the Debian mirror of this machine.

It asks apt, with a state of its own, which packages a machine with nothing would install today, for each architecture.
"""

import re
import subprocess
import tempfile
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

LOCK = Path(__file__).parents[2] / "requirements-debian.lock"
ARCHITECTURES = ("amd64", "arm64")

_DOCKERFILE = LOCK.with_name("Dockerfile")
_PACKAGE = re.compile(
    r"^'\S+' (?P<name>[^_ ]+)_(?P<version>[^_ ]+)_\w+\.deb \d+ SHA256:(?P<digest>\w{64})$", re.MULTILINE
)
_HEADER = """\
# Debian's packages in the image and in the stage that builds it, written by: python3 -m deploy.image.lock
# snapshot {time}
"""


def wanted(dockerfile: str) -> list[str]:
    """The packages that a Dockerfile installs."""
    return sorted(
        {name for line in re.findall(r"debian\.sh ([\w. -]+)$", dockerfile, re.MULTILINE) for name in line.split()}
    )


def main() -> None:
    """Write the lock."""
    time = (datetime.now(UTC) - timedelta(hours=6)).strftime("%Y%m%dT%H0000Z")
    packages = wanted(_DOCKERFILE.read_text())
    lines = sorted(line for architecture in ARCHITECTURES for line in _locked(architecture, packages))
    LOCK.write_text(_HEADER.format(time=time) + "".join(f"{line}\n" for line in lines))


def _locked(architecture: str, packages: list[str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        (folder / "status").touch()
        own = {
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "APT::Install-Recommends": "no",
            "Acquire::ForceHash": "SHA256",
        }
        apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in own.items())]
        subprocess.run([*apt, "update"], check=True)
        printed = subprocess.run(
            [*apt, "install", "--print-uris", *packages], capture_output=True, text=True, check=True
        )
    for found in _PACKAGE.finditer(printed.stdout):
        yield f"{found['name']}={urllib.parse.unquote(found['version'])} {architecture} {found['digest']}"


if __name__ == "__main__":
    main()
