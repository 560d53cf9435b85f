"""Which targets the source VM dials: pure decisions, so that it is never an open proxy.

Two questions, asked in this order: is the *name* on the allow-list (before it is resolved, so that nobody makes the
source VM ask for names), and may the *addresses* that it resolves to be dialled. One forbidden address refuses them
all: a name that resolves to a broker and to this VM's own loopback at once is an attack (DNS rebinding) or a mistake,
never a cluster.
"""

import ipaddress
from collections.abc import Sequence

from appliance.errors import TargetRefused
from appliance.settings.target import Target
from appliance.settings.values import TunnelSettings

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORBIDDEN = {
    "cloud metadata": (
        "169.254.169.254/32",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
        "100.100.100.200/32",
        "168.63.129.16/32",
    ),
    "unspecified": ("0.0.0.0/8", "::/128"),
    "loopback": ("127.0.0.0/8", "::1/128"),
    "link-local": ("169.254.0.0/16", "fe80::/10"),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
}
"""Where no broker lives, by the name of the danger.

The metadata services are those of AWS, Google, Alibaba and Azure; most others share the first address.
"""

_FORBIDDEN_NETWORKS = [
    (kind, ipaddress.ip_network(network)) for kind, networks in _FORBIDDEN.items() for network in networks
]


def check_target(target: Target, settings: TunnelSettings) -> None:
    """Let a target on the allow-list pass.

    Raises:
        TargetRefused: it isn't there.
    """
    if not settings.allowed.allows(target):
        raise TargetRefused(f"{target} is not on the allow-list")


def dialable(target: Target, addresses: Sequence[str], settings: TunnelSettings) -> tuple[str, ...]:
    """The addresses of ``target`` that may be dialled: all of them.

    Raises:
        TargetRefused: one of them is where no broker lives, and not in a network that the settings permit.
    """
    for text in addresses:
        address = _plain(ipaddress.ip_address(text))
        kind = next((kind for kind, network in _FORBIDDEN_NETWORKS if address in network), None)
        if kind and not any(address in network for network in settings.target_networks):
            raise TargetRefused(f"{target.host} resolves to {address}: {kind}")
    return tuple(addresses)


def _plain(address: _Address) -> _Address:
    """The IPv4 address inside an IPv4-mapped IPv6 one, which reaches the same host."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
