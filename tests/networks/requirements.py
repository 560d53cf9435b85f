"""What the suite needs of the machine it runs on."""

from tests.support import requirements

_PACKAGES = {
    "ip": "iproute2",
    "nft": "nftables",
    "kcat": "kcat",
    "dig": "bind9-dnsutils",
    "sshd": "openssh-server",
    "stunnel": "stunnel4",
    "openssl": "openssl",
}
"""The Debian package of each program."""


def missing() -> str | None:
    """What is to be done before the suite can run, in one line; None when nothing is."""
    return requirements.missing("networks", "makes network namespaces", _PACKAGES)
