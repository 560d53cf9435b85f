"""Invented names: test a resolver for them below a domain that SOURCE_BROKER_PATTERN allows.

A wildcard record knows every name, and a cloud's DNS knows one that follows from each address of its network
(``ip-10-0-0-7.ec2.internal``, ``10-0-0-7.default.pod.cluster.local``). Below such a domain a pattern allows every host.
"""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from appliance.errors import NameUnresolved, Unreachable
from appliance.settings.target import AllowedTargets, Target, TargetPattern

Resolve = Callable[[str], Awaitable[Sequence[str]]]

_FORMS = ("ip-{}", "{}")
_HOMES_MAX = 2
"""Most broker addresses whose neighbours are queried."""


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """An invented name below a pattern's domain, and the resolver's address for it."""

    pattern: TargetPattern
    host: str
    address: str

    def __str__(self) -> str:
        return f"{self.host} was made up just now, and is {self.address}"


def remedy(pattern: TargetPattern) -> str:
    """The remedy: the setting that bounds the pattern."""
    return (
        f"SOURCE_BROKER_PATTERN={pattern} reaches every host that this DNS knows: name the brokers' networks in "
        "TUNNEL_BROKER_NETWORKS on the source VM"
    )


def labels(random: str, addresses: Iterable[str]) -> tuple[str, ...]:
    """First labels of invented names: ``random``, and those that follow from ``addresses``."""
    dashed = [address.replace(".", "-") for address in addresses if _is_ipv4(address)]
    return random, *(form.format(one) for one in dashed for form in _FORMS)


async def resolved_names(
    allowed: AllowedTargets, resolve: Resolve, random: str, own: Sequence[str] = ()
) -> tuple[ResolvedName, ...]:
    """The first invented name below each pattern that resolves to another address than a named broker's.

    The names are made of this machine's ``own`` addresses, which certainly exist, and of neighbours of the brokers'
    addresses. A resolver that does not answer counts as one that knows none.
    """
    homes = await _homes(allowed.exact, resolve)
    machines = (*own, *local_addresses(homes[:1]))
    asked = labels(random, dict.fromkeys([*machines, *map(_neighbour, filter(_is_ipv4, homes[:_HOMES_MAX]))]))
    every = [await _first_resolved(pattern, asked, allowed.exact, homes, resolve) for pattern in allowed.patterns]
    return tuple(name for name in every if name)


def local_addresses(towards: Iterable[str]) -> tuple[str, ...]:
    """This machine's own address on the route to each of ``towards``; no packet is sent."""
    own = []
    for address in filter(_is_ipv4, towards):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((address, 9))
            except OSError:
                continue
            own.append(probe.getsockname()[0])
    return tuple(own)


async def _homes(brokers: Sequence[Target], resolve: Resolve) -> list[str]:
    homes: list[str] = []
    for host in dict.fromkeys(target.host for target in brokers):
        try:
            homes += await resolve(host)
        except NameUnresolved:
            continue
        except Unreachable:
            break
    return homes


async def _first_resolved(
    pattern: TargetPattern, asked: Sequence[str], brokers: Sequence[Target], homes: Sequence[str], resolve: Resolve
) -> ResolvedName | None:
    named_hosts = {target.host for target in brokers}
    for host in (f"{label}.{pattern.domain}" for label in asked):
        try:
            addresses = await resolve(host) if host not in named_hosts else ()
        except NameUnresolved:
            continue
        except Unreachable:
            return None
        foreign = [address for address in addresses if address not in homes]
        if foreign:
            return ResolvedName(pattern, host, foreign[0])
    return None


def _neighbour(address: str) -> str:
    return str(ipaddress.IPv4Address(int(ipaddress.IPv4Address(address)) ^ 1))


def _is_ipv4(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).version == 4
    except ValueError:
        return False
