"""The facts of a VM that rendering needs, and the ports that containers publish on it."""

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.role import Role
from appliance.settings.target import Target
from appliance.settings.values import Settings

IMAGE_USER = 10001
"""User and group of the image. Files that root prepares belong to it, because no container runs as root."""


@dataclass(frozen=True, slots=True)
class Vm:
    """One VM, and the user who prepares it.

    ``user`` and ``group`` are those of the containers, which must be able to read the files with secrets: the preparing
    user's, or the image's for root. ``cores`` is the VM's number of cores. ``folder`` is the link's own, as an absolute
    path. ``resolver`` is the VM's DNS server at the address that a container reaches, or None. ``salt`` goes into the
    published digests of files with secrets, so that nobody can test guesses on them. ``is_roots`` says that root
    prepares it: any user may have the number of the image's. ``name`` is the VM's host name, as the link's other VMs
    and its status show it.
    """

    user: int
    group: int
    cores: int
    folder: Path
    resolver: Target | None
    salt: str
    is_roots: bool = False
    name: str = ""


CONSOLE_PORT = 8080
STATUS_PORT = 8081
CONTROL_CENTER_PORT = 8082

_NETWORK = ipaddress.IPv4Network("127.160.0.0/11")
"""Loopback network beside TUNNEL_ENDPOINT_NETWORK. Each link has an address in it, and all links use the same ports."""

_ANY = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class PortMapping:
    """A container's port, published on the VM at ``at``; ``variable`` is the setting that changes it."""

    variable: str
    at: Target
    container_port: int

    def clashes_with(self, other: Target) -> bool:
        """True when both cannot listen at once: the same port, on one address or on every address."""
        return self.at.port == other.port and (
            self.at.host == other.host or not {self.at.host, other.host}.isdisjoint(_ANY)
        )


def port_mappings(environment: Mapping[str, str], settings: Settings, role: Role) -> tuple[PortMapping, ...]:
    """The ports that a VM's containers publish: the tunnel's, and the pages', on loopback unless set otherwise."""
    tunnel, in_order = settings.tunnel, settings.source.member is not None
    mappings: list[PortMapping] = []
    if role & Role.SOURCE:
        own = Target(str(link_address(tunnel.link, Role.SOURCE)), STATUS_PORT)
        # In an order, TUNNEL_STATUS_LISTEN is the address of the gateway's pages.
        status = _page("TUNNEL_STATUS_LISTEN", {} if in_order else environment, tunnel.status, own)
        mappings += PortMapping("TUNNEL_PORT", tunnel.listen, tunnel.listen.port), status
    address = str(link_address(tunnel.link, role & ~Role.SOURCE))
    pages = (
        (Role.REPLICATOR, "CONSOLE_LISTEN", settings.console.listen, CONSOLE_PORT),
        (Role.DESTINATION, "TUNNEL_STATUS_LISTEN", tunnel.status, STATUS_PORT),
        (Role.CONSOLE, "CONTROL_CENTER_LISTEN", settings.control_center.listen, CONTROL_CENTER_PORT),
    )
    for of, variable, chosen, port in pages:
        if of & role:
            mappings.append(_page(variable, environment, chosen, Target(address, port)))
    return tuple(mappings)


def link_address(link: str, role: Role) -> ipaddress.IPv4Address:
    """The loopback address for the pages of one end of a link: the same each time, and different for each link."""
    return _NETWORK[int.from_bytes(_digest(link, role)[:4]) % _NETWORK.num_addresses]


def bridge(link: str, role: Role) -> str:
    """The network interface of one end's containers, which the firewall rules name; Linux takes 15 letters."""
    return f"kafka-{_digest(link, role).hex()[:9]}"


def _digest(link: str, role: Role) -> bytes:
    end = "source" if role & Role.SOURCE else "destination"
    return hashlib.sha256(f"{end} {link}".encode()).digest()


def _page(variable: str, environment: Mapping[str, str], chosen: Target, own: Target) -> PortMapping:
    """The address of a page: from the settings, otherwise the link's own, because a VM may have many links."""
    at = Target(chosen.host, chosen.port or own.port) if environment.get(variable, "").strip() else own
    return PortMapping(variable, at, own.port)
