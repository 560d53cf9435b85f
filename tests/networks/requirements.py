"""What the suite needs of the machine it runs on."""

import os
import shutil

_PACKAGES = {
    "ip": "iproute2",
    "nft": "nftables",
    "kcat": "kcat",
    "dig": "bind9-dnsutils",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "stunnel": "stunnel4",
}
"""The Debian package of each program."""


def missing() -> str | None:
    """What is to be done before the suite can run, in one line; None when nothing is."""
    if os.geteuid() != 0:
        return "bin/test --networks makes network namespaces: run it as root"
    packages = [package for program, package in _PACKAGES.items() if shutil.which(program) is None]
    return f"bin/test --networks needs more programs: apt-get install {' '.join(packages)}" if packages else None
