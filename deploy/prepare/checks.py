"""Faults that appear only in containers, or only on this VM, such as ports that other links beside this one have."""

import asyncio
import contextlib
import errno
import ipaddress
import os
import re
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from appliance.dns.invented import remedy, resolved_names
from appliance.dns.stub import StubResolver
from appliance.settings.role import Role
from appliance.settings.target import Target, is_ip_literal
from appliance.settings.values import DnsSettings, Route, Settings, TunnelSettings
from appliance.settings.variable import declared_within
from deploy.render.compose import COMPOSE_FILE
from deploy.render.mounts import mounts
from deploy.render.vm import PortMapping, Vm

_IN_CONTAINERS = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv4Address("127.0.0.11"))
"""Addresses of the shim and of Docker's own resolver."""

_PREPARED_BEFORE = ("prepared", ".env")

_PORT = re.compile(r'^ +- "(\S+:\d+):\d+"$', re.MULTILINE)


def container_faults(settings: Settings, role: Role, vm: Vm) -> list[str]:
    """Faults of the settings that appear only in containers on this VM."""
    if settings.source.member and settings.route is Route.DIRECT:
        return ["GLOBAL_ROUTE=direct: expected tunnel here; without a tunnel start bin/appliance order run"]
    faults = list(_resolvers(settings, role, vm))
    if role & Role.DESTINATION and any(address in settings.tunnel.endpoint_network for address in _IN_CONTAINERS):
        faults.append(
            f"TUNNEL_ENDPOINT_NETWORK={settings.tunnel.endpoint_network}: expected a network without 127.0.0.1 and "
            "127.0.0.11, which Docker and the DNS shim have in a container"
        )
    return faults + list(_unreadable(settings, role, vm)) + list(_unwritable(settings, role, vm))


def _resolvers(settings: Settings, role: Role, vm: Vm) -> Iterator[str]:
    if role & Role.SOURCE:
        yield from _loopback("TUNNEL_RESOLVER", settings.tunnel.resolver)
    if role & Role.DESTINATION:
        yield from _loopback("DNS_UPSTREAM", settings.dns.upstream)
        if not (settings.dns.upstream or vm.resolver):
            yield "DNS_UPSTREAM: missing: /etc/resolv.conf names no DNS server that a container reaches"


def _loopback(variable: str, resolver: Target | None) -> Iterator[str]:
    if resolver and is_ip_literal(resolver.host) and ipaddress.ip_address(resolver.host).is_loopback:
        yield f"{variable}={resolver}: expected a DNS server that a container reaches, not this VM's loopback"


def _unreadable(settings: Settings, role: Role, vm: Vm) -> Iterator[str]:
    for mount in mounts(settings, role):
        file = mount.source / Path(mount.path).name if mount.source.is_dir() else mount.source
        cause = _why_unreadable(file, mount.source, vm)
        if cause:
            yield f"{mount.variable}={file}: {cause}"


def _unwritable(settings: Settings, role: Role, vm: Vm) -> Iterator[str]:
    """The fault of an audit table's folder in which the containers' user may not write."""
    folder = settings.audit.folder
    if not folder or not role & Role.REPLICATOR:
        return
    try:
        status = Path(folder).stat()
        if stat.S_ISDIR(status.st_mode) and _may(stat.S_IWOTH, status, vm) and _may(stat.S_IXOTH, status, vm):
            return
    except OSError:
        pass
    make = f"mkdir -p {folder} && chown {vm.user}:{vm.group} {folder}"
    yield f"AUDIT_PATH={folder}: expected a folder in which user {vm.user}, the containers' user, may write: {make}"


def _why_unreadable(file: Path, mounted: Path, vm: Vm) -> str | None:
    try:
        status = file.stat()
        inside = file.resolve().is_relative_to(mounted.resolve())
    except OSError as error:
        return f"expected a file: {error.strerror}"
    if not inside:
        return f"leads out of its folder, but the container sees only that folder: put {file.resolve()} there itself"
    if mounted.is_dir() and not _may(stat.S_IXOTH, mounted.stat(), vm):
        return f"user {vm.user}, the containers' user, may not enter its folder, which is mounted"
    if not _may(stat.S_IROTH, status, vm):
        return f"user {vm.user}, the containers' user, may not read it"
    return None


def _may(others: int, status: os.stat_result, vm: Vm) -> bool:
    """True if the containers' user has the permission whose bit for other users is ``others``."""
    shift = 6 if status.st_uid == vm.user else 3 if status.st_gid == vm.group else 0
    return bool(status.st_mode & others << shift)


def unused_variables(environment: Mapping[str, str], settings: Settings) -> list[str]:
    """A warning that names the variables of the tunnel beside SOURCE_ROUTE=direct; none where none is set."""
    of_the_tunnel = (name for kind in (TunnelSettings, DnsSettings) for name in _names_within(kind))
    unused = [name for name in of_the_tunnel if environment.get(name, "").strip()]
    if settings.route is not Route.DIRECT or not unused:
        return []
    return [f"SOURCE_ROUTE=direct: there is no tunnel, so these are not used: {', '.join(unused)}"]


def _names_within(kind: type[Any]) -> Iterator[str]:
    return (name for variable in declared_within(kind) for name in variable.names)


def made_up_name_warnings(settings: TunnelSettings, resolver: Target | None) -> list[str]:
    """A warning for each pattern for which a made-up name has an address.

    ``resolver`` is the VM's DNS server, used when the settings name none.
    """
    server = settings.resolver or resolver
    if not settings.allowed.patterns or settings.broker_networks or server is None:
        return []
    random, own = f"nobody-{token_hex(4)}", [settings.server.host]
    names = asyncio.run(resolved_names(settings.allowed, StubResolver(server).addresses, random, own))
    return [f"{one}: {remedy(one.pattern)}" for one in names]


def port_conflicts(folder: Path, mappings: Sequence[PortMapping]) -> list[str]:
    """A fault for each port that a link in a folder beside this one also publishes, or on which another program
    listens."""
    ours, here = _published_in(folder), folder.resolve()
    faults = [
        f"{one.variable}: the link in {other} publishes {at} too: choose another"
        for other in sorted(here.parent.glob("*"))
        if other.resolve() != here
        for at in _published_in(other)
        for one in mappings
        if one.clashes_with(at)
    ]
    if not ours and any((folder / name).exists() for name in _PREPARED_BEFORE):
        return faults  # the link's own containers may have the ports; Docker names one that another program has
    busy = [one for one in mappings if one.at not in ours and _is_taken(one.at)]
    return faults or [f"{one.variable}: another program has {one.at}: stop it, or choose another" for one in busy]


def _published_in(folder: Path) -> set[Target]:
    """The ports that a link's folder publishes, also one of an older release; none if it cannot be read."""
    found: set[Target] = set()
    for name in (COMPOSE_FILE, Path(COMPOSE_FILE).name):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found.update(_targets((folder / name).read_text("utf-8")))
    return found


def _targets(text: str) -> Iterator[Target]:
    for at in _PORT.findall(text):
        with contextlib.suppress(ValueError):
            yield Target.parse(at)


def _is_taken(at: Target) -> bool:
    """True when a program listens there. An address that this VM does not have counts as free; Docker will refuse
    it."""
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((at.host, at.port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
