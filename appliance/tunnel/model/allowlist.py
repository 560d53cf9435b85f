"""The targets that each VM dials: pure decisions, so that neither is an open proxy.

The destination VM dials source brokers at their endpoints alone: metadata may name any host of its network.

The source VM makes two checks, in this order: the *name* must be on the allow-list (before it is resolved, so that no
client makes the source VM query names), and the *addresses* that it resolves to must be allowed. One forbidden address
refuses the target: a name that resolves to a broker and to this VM's own loopback at once is an attack (DNS rebinding)
or a mistake, never a cluster.

An IPv6 address may lead to an IPv4 host. For mechanisms in use today (IPv4-mapped addresses, the translators of
IPv6-only networks), both the IPv4 address and the outer one are checked. Deprecated mechanisms are refused: the address
does not show which host forwards the packet, and to which host.
"""

import ipaddress
from collections.abc import Sequence

from appliance.errors import BrokerNotAllowed, NameUnresolved, TargetRefused
from appliance.settings.target import AllowedTargets, Target, is_ip_literal
from appliance.settings.values import TunnelSettings

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORBIDDEN = {
    "unspecified": ("0.0.0.0/8", "::/128"),
    "reserved": ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10"),
    "loopback": ("127.0.0.0/8", "::1/128"),
    "cloud metadata": (
        "169.254.169.254/32",
        "fd00:ec2::/32",
        "fd20:ce::/64",
        "fd00:c1::a9fe:a9fe/128",
        "fd00:42::42/128",
        "100.100.100.200/32",
        "168.63.129.16/32",
    ),
    "link-local": ("169.254.0.0/16", "fe80::/10"),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
    "broadcast": ("255.255.255.255/32",),
    "an IPv4 address by a deprecated way": ("::/96", "2002::/16", "2001::/32"),
}
"""Networks in which no broker lives, by the name of the danger.

The metadata services are those of AWS (all of its local services), Google, Oracle, Scaleway, Alibaba and Azure; most
others share the first address. The deprecated ways: IPv4-compatible (RFC 4291, section 2.5.5.1), 6to4 (RFC 7526) and
Teredo (RFC 4380, whose last servers are gone); ISATAP (RFC 5214) shows in the address's second half.
"""

_FORBIDDEN_NETWORKS = [
    (kind, ipaddress.ip_network(network)) for kind, networks in _FORBIDDEN.items() for network in networks
]

_DEPRECATED = list(_FORBIDDEN)[-1]
_ISATAP = (0x00005EFE, 0x02005EFE)

_LAST_32_BITS = [ipaddress.IPv6Network(text) for text in ("::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")]
"""IPv4-mapped (RFC 4291), IPv4-translated (RFC 2765), NAT64's well-known prefix (RFC 6052)."""
_MAPPED = _LAST_32_BITS[0]
"""The kernel itself sends these by IPv4, so that the outer address is meaningless."""
_IPV4 = 0xFFFFFFFF
_NOWHERE = ipaddress.IPv4Network("0.0.0.0/8")
"""In what is not an IPv4 address, but the zeros before or behind it."""
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
"""RFC 8215: an operator's own translators, each with a prefix of any length of RFC 6052 in it."""


def check_target(target: Target, settings: TunnelSettings) -> None:
    """Check that a target is on the allow-list.

    Raises:
        TargetRefused: it isn't there.
    """
    if not settings.allowed.allows(target):
        raise TargetRefused(f"{target} is not on the allow-list")


def check_endpoint(target: Target, addresses: Sequence[str], settings: TunnelSettings) -> None:
    """Check that the destination VM may dial a source broker: it is on the allow-list, and has endpoints alone.

    Raises:
        BrokerNotAllowed: it isn't on the list.
    """
    if not settings.allowed.allows(target):
        raise BrokerNotAllowed(f"{target}: {why_refused(settings.allowed, target)}: {settings.allowed.variables}")
    network = settings.endpoint_network
    if foreign := [text for text in addresses if ipaddress.ip_address(text) not in network]:
        raise NameUnresolved(f"{target} resolves to {foreign[0]}, outside of TUNNEL_ENDPOINT_NETWORK={network}")


def why_refused(allowed: AllowedTargets, target: Target) -> str:
    """The reason why a broker is not on the allow-list."""
    if is_ip_literal(target.host):
        return "it is advertised by an address, and the tunnel goes to names only"
    ports = allowed.ports_of(target.host)
    return f"its name is allowed on other ports only: {_spans(ports)}" if ports else "its name is not allowed"


def _spans(ports: tuple[int, ...]) -> str:
    firsts = [port for port in ports if port - 1 not in ports]
    lasts = [port for port in ports if port + 1 not in ports]
    return ", ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in zip(firsts, lasts, strict=True)
    )


def dialable(target: Target, addresses: Sequence[str], settings: TunnelSettings) -> tuple[str, ...]:
    """The addresses of ``target`` that may be dialled: all of them.

    Raises:
        TargetRefused: one of them is outside the networks of the settings, or in a network without brokers.
    """
    for text in addresses:
        address = ipaddress.ip_address(text)
        ends = _ends(address)
        for end in ends:
            kind = _forbidden(end, settings)
            if kind:
                raise TargetRefused(f"{target.host} resolves to {end}: {kind}")
        # Of several ends only one is where the packets go: then it is the outer address that has to be named.
        certain = ends[-1:] if address in _MAPPED else ends if len(ends) <= 2 else ends[:1]
        if settings.broker_networks and not any(end in net for end in certain for net in settings.broker_networks):
            raise TargetRefused(f"{target.host} resolves to {certain[-1]}: outside of TUNNEL_BROKER_NETWORKS")
    return tuple(addresses)


def _forbidden(address: _Address, settings: TunnelSettings) -> str | None:
    """The reason why no broker can have this address; None if one can, or if the settings name such a network.

    A larger network, such as 0.0.0.0/0, does not permit a forbidden one inside it.
    """
    for kind, forbidden in _FORBIDDEN_NETWORKS:
        if address in forbidden and not any(
            address in network and _lies_in(network, forbidden) for network in settings.broker_networks
        ):
            return kind
    if address.version == 6 and int(address) >> 32 & _IPV4 in _ISATAP:
        return _DEPRECATED
    return None


def _lies_in(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network, other: ipaddress.IPv4Network | ipaddress.IPv6Network
) -> bool:
    return network.version == other.version and network.prefixlen >= other.prefixlen and network[0] in other


def _ends(address: _Address) -> list[_Address]:
    """The address itself, and the IPv4 ones that it may lead to: several where that depends on the prefix."""
    if address.version == 4:
        return [address]
    bits = int(address)
    last = ipaddress.IPv4Address(bits & _IPV4)
    if any(address in network for network in _LAST_32_BITS):
        return [address, last]
    if address not in _LOCAL_NAT64:
        return [address]
    # After a prefix of 48, 56 or 64 bits the octet of bits 64 to 71 is left out (RFC 6052, section 2.2).
    joined = bits >> 64 << 56 | bits & (1 << 56) - 1
    inner = [*(ipaddress.IPv4Address(joined >> 120 - length - 32 & _IPV4) for length in (48, 56, 64)), last]
    return [address, *(one for one in inner if one not in _NOWHERE)]
