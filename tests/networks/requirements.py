"""The requirements of the suite on its machine."""

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
    """The missing requirement in one line; None if the suite can run."""
    return requirements.missing("networks", "makes network namespaces", _PACKAGES)
