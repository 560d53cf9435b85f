"""Facts about this VM: the user who prepares, its cores, its DNS server, and its Docker."""

import ipaddress
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from appliance.settings.target import Target
from deploy.docker import has_compose_plugin
from deploy.render.vm import IMAGE_USER

_RESOLVER_FILES = (Path("/run/systemd/resolve/resolv.conf"), Path("/etc/resolv.conf"))
"""The first holds the servers of systemd-resolved. In the second it writes a server that no container can reach."""

_DOCKER_SOCKET = Path("/var/run/docker.sock")
_DNS_PORT = 53


def container_user() -> tuple[int, int]:
    """User and group of the containers: the preparing user's, or the image's own for root."""
    return (os.geteuid(), os.getegid()) if os.geteuid() else (IMAGE_USER, IMAGE_USER)


def host_name(own: str) -> str:
    """The VM's name as a container may have it: the first label, of letters, digits and hyphens."""
    return re.sub(r"[^a-zA-Z0-9-]+", "-", own.partition(".")[0]).strip("-")[:63]


def resolver() -> Target | None:
    """The VM's DNS server, at the address that a container reaches."""
    for path in _RESOLVER_FILES:
        try:
            servers = list(nameservers(path.read_text("utf-8", "replace")))
        except OSError:
            continue
        if servers:
            return min(servers, key=_is_ipv6)
    return None


def _is_ipv6(server: Target) -> bool:
    """True for an IPv4 address: Docker's networks have no IPv6 by default."""
    return ":" in server.host


def nameservers(text: str) -> Iterator[Target]:
    """The name servers in a resolv.conf, without those on the VM's own loopback."""
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2 or words[0] != "nameserver" or "%" in words[1]:
            continue
        try:
            address = ipaddress.ip_address(words[1])
        except ValueError:
            continue
        if not address.is_loopback:
            yield Target(str(address), _DNS_PORT)


def notes() -> list[str]:
    """Requirements of the next command that are missing."""
    missing = [f"{program} is not installed" for program in ("docker", "docker-compose") if _lacks(program)]
    if missing:
        return [f"{' and '.join(missing)}: on Debian, apt-get install docker.io docker-compose"]
    if _DOCKER_SOCKET.exists() and not os.access(_DOCKER_SOCKET, os.R_OK | os.W_OK):
        return ["this user may not use Docker: sudo usermod -aG docker $USER, and log in again"]
    return []


def _lacks(program: str) -> bool:
    if shutil.which(program):
        return False
    return program == "docker" or not (shutil.which("docker") and has_compose_plugin())
