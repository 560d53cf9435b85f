"""The VM as the rendering sees it, and the ports that containers have on it."""

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.role import Role
from appliance.settings.target import Target
from appliance.settings.values import Settings

IMAGE_USER = 10001
"""User and group of the image; what root prepares belongs to it, since nothing in a container runs as root."""


@dataclass(frozen=True, slots=True)
class Vm:
    """One VM, and who prepares it.

    ``user`` and ``group`` are those of the containers, which must be able to read the files with secrets: the preparing
    user's, or the image's for root. ``cores`` is how many the VM has, ``folder`` the link's own (absolute),
    ``resolver`` its DNS server as a container reaches it (None: it has none). ``salt`` goes into what is published
    about files with secrets, so that nobody can try guesses on it.
    """

    user: int
    group: int
    cores: int
    folder: Path
    resolver: Target | None
    salt: str


CONSOLE_PORT = 8080
STATUS_PORT = 8081

_NETWORK = ipaddress.IPv4Network("127.160.0.0/11")
"""Loopback network beside TUNNEL_ENDPOINT_NETWORK: each link has an address in it, and all links the same ports."""

_ANY = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class PortMapping:
    """A port of a container that the VM has on ``at``; ``variable`` is the setting that moves it."""

    variable: str
    at: Target
    container_port: int

    def clashes_with(self, other: Target) -> bool:
        """True when both cannot listen at once: the same port, on one address or on every address."""
        return self.at.port == other.port and (
            self.at.host == other.host or not {self.at.host, other.host}.isdisjoint(_ANY)
        )


def port_mappings(environment: Mapping[str, str], settings: Settings, role: Role) -> tuple[PortMapping, ...]:
    """The ports that a VM's containers publish: the tunnel's, and pages on loopback unless the settings say where."""
    own = str(link_address(settings.tunnel.link, role))
    status = _page("TUNNEL_STATUS_LISTEN", environment, settings.tunnel.status, Target(own, STATUS_PORT))
    if role & Role.SOURCE:
        return PortMapping("TUNNEL_PORT", settings.tunnel.listen, settings.tunnel.listen.port), status
    return _page("CONSOLE_LISTEN", environment, settings.console.listen, Target(own, CONSOLE_PORT)), status


def link_address(link: str, role: Role) -> ipaddress.IPv4Address:
    """The loopback address for the pages of one end of a link: always the same, and different for each link."""
    end = "source" if role & Role.SOURCE else "destination"
    digest = hashlib.sha256(f"{end} {link}".encode()).digest()
    return _NETWORK[int.from_bytes(digest[:4]) % _NETWORK.num_addresses]


def _page(variable: str, environment: Mapping[str, str], chosen: Target, own: Target) -> PortMapping:
    """The address of a page: from the settings, or else the link's own, because a VM may have many links."""
    at = Target(chosen.host, chosen.port or own.port) if environment.get(variable, "").strip() else own
    return PortMapping(variable, at, own.port)
