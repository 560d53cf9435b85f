"""What the containers of a link publish on their VM, and on which addresses."""

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from appliance.settings.role import Role
from appliance.settings.target import Target
from appliance.settings.values import Settings

CONSOLE_PORT = 8080
STATUS_PORT = 8081

_NETWORK = ipaddress.IPv4Network("127.160.0.0/11")
"""Of loopback, beside TUNNEL_ENDPOINT_NETWORK: a link has an address in it, so that every link has the same ports."""

_ANY = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Published:
    """A port of a container that the VM has on ``at``; ``variable`` is the setting that moves it."""

    variable: str
    at: Target
    container_port: int

    def clashes_with(self, other: Target) -> bool:
        """Whether both cannot listen at once: the same port, on one address or on every address."""
        return self.at.port == other.port and (
            self.at.host == other.host or not {self.at.host, other.host}.isdisjoint(_ANY)
        )


def published(environment: Mapping[str, str], settings: Settings, role: Role) -> tuple[Published, ...]:
    """What the containers of a VM publish: the tunnel's port, and pages on loopback unless the settings say where."""
    own = str(link_address(settings.tunnel.link, role))
    status = _page("TUNNEL_STATUS_LISTEN", environment, settings.tunnel.status, Target(own, STATUS_PORT))
    if role & Role.SOURCE:
        return Published("TUNNEL_PORT", settings.tunnel.listen, settings.tunnel.listen.port), status
    return _page("CONSOLE_LISTEN", environment, settings.console.listen, Target(own, CONSOLE_PORT)), status


def link_address(link: str, role: Role) -> ipaddress.IPv4Address:
    """The loopback address on which one end of a link shows its pages: always the same, and no other link's."""
    end = "source" if role & Role.SOURCE else "destination"
    digest = hashlib.sha256(f"{end} {link}".encode()).digest()
    return _NETWORK[int.from_bytes(digest[:4]) % _NETWORK.num_addresses]


def _page(variable: str, environment: Mapping[str, str], chosen: Target, own: Target) -> Published:
    """A page is where the settings have chosen to have it; the default of a process is none of a VM with many links."""
    at = Target(chosen.host, chosen.port or own.port) if environment.get(variable, "").strip() else own
    return Published(variable, at, own.port)
