"""The requirements of the suites that need more programs than Python and Java."""

import os
import shutil
from collections.abc import Mapping

_IMAGE = {
    "dockerd": "docker.io",
    "debootstrap": "debootstrap",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
"""What builds the appliance's image."""

PACKAGES: Mapping[str, Mapping[str, str]] = {
    "console": {
        "promtool": "prometheus",
        "prometheus": "prometheus",
        "chromium": "chromium",
        "chromedriver": "chromium-driver",
    },
    "hosts": {"systemd-analyze": "systemd", "zsh": "zsh", "fish": "fish", "man": "man-db"},
    "containers": {
        **_IMAGE,
        "docker-compose": "docker-compose",
        "docker-registry": "docker-registry",
        "podman": "podman",
        "catatonit": "catatonit",
    },
    "kubernetes": {**_IMAGE, "go": "golang"},
    "networks": {
        "ip": "iproute2",
        "nft": "nftables",
        "kcat": "kcat",
        "dig": "bind9-dnsutils",
        "sshd": "openssh-server",
        "stunnel": "stunnel4",
        "openssl": "openssl",
    },
}
"""The Debian package of each program of a suite."""

_FOR_ROOT = {
    "containers": "starts Docker engines of its own",
    "kubernetes": "starts a node of its own",
    "networks": "makes network namespaces",
}
"""The work of a suite that only root may do."""


def missing(suite: str) -> str | None:
    """The missing requirement of ``bin/test --<suite>`` in one line; None if it can run."""
    if suite in _FOR_ROOT and os.geteuid() != 0:
        return f"bin/test --{suite} {_FOR_ROOT[suite]}: run it as root"
    absent = [package for program, package in PACKAGES[suite].items() if shutil.which(program) is None]
    return f"bin/test --{suite} needs more programs: apt-get install {' '.join(absent)}" if absent else None
