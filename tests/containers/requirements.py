"""The requirements of the suite on its machine."""

from tests.support import requirements

_PACKAGES = {
    "dockerd": "docker.io",
    "docker-compose": "docker-compose",
    "debootstrap": "debootstrap",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "podman": "podman",
    "catatonit": "catatonit",
}
"""The Debian package of each program."""


def missing() -> str | None:
    """The missing requirement in one line; None if the suite can run."""
    return requirements.missing("containers", "starts Docker engines of its own", _PACKAGES)
