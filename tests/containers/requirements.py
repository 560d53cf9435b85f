"""What the suite needs of the machine it runs on."""

from tests.support import requirements

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
    return requirements.missing("containers", "starts Docker engines of its own", _PACKAGES)
