"""What the suite needs of the machine it runs on."""

import os
import shutil

_PACKAGES = {
    "dockerd": "docker.io",
    "docker-compose": "docker-compose",
    "debootstrap": "debootstrap",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
"""The Debian package of each program."""


def missing() -> str | None:
    """What is to be done before the suite can run, in one line; None when nothing is."""
    if os.geteuid() != 0:
        return "bin/test --containers starts Docker engines of its own: run it as root"
    packages = [package for program, package in _PACKAGES.items() if shutil.which(program) is None]
    return f"bin/test --containers needs more programs: apt-get install {' '.join(packages)}" if packages else None
