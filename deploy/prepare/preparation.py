"""Prepare the files of a link's folder: all checks, and all faults at once."""

import os
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import SettingsError
from appliance.settings.env_file import describes_order, load, read_either
from appliance.settings.one_topic import with_one_topic
from appliance.settings.role import Role
from appliance.settings.values import Route, Settings
from deploy.prepare.checks import container_faults, port_conflicts, unused_variables
from deploy.prepare.compose_env import EnvFile, prepared_env
from deploy.prepare.vm import container_user, host_name, resolver
from deploy.render.compose import COMPOSE_FILE, DESTINATION_VM, DIRECT_VM, ORDER_VM, RenderedFile, rendered, unit_file
from deploy.render.container import SALT, SERVICES
from deploy.render.vm import PortMapping, Vm, bridge, port_mappings

_SETTINGS = {service.name: service.path for services in SERVICES.values() for service in services}
"""The files of all services of all VMs."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """The files of a VM with their future ``owner`` (user and group), its .env, and the ports that it publishes.

    ``before`` are the services for which the folder was prepared; none if it is new.
    """

    settings: Settings
    files: tuple[RenderedFile, ...]
    env: EnvFile
    owner: tuple[int, int]
    port_mappings: tuple[PortMapping, ...]
    warnings: tuple[str, ...] = ()
    before: frozenset[str] = frozenset()

    @property
    def change_of_role(self) -> str:
        """The change of the VM, whose files are those of another one, in words; empty if they are its own, or new."""
        was, becomes = _vm_with(self.before), _vm_with(self.services)
        if was in ("", becomes):
            return ""
        return f"this folder is prepared as the {was}, and would become the {becomes}"

    @property
    def stale_files(self) -> list[str]:
        """Settings, with their secrets, of services of other VMs, and the unit of a VM that copied."""
        possible = {unit_file(self.settings.tunnel.link), *_SETTINGS.values()}
        return sorted(possible - {file.path for file in self.files})

    @property
    def services(self) -> frozenset[str]:
        """The services of its docker-compose.yml."""
        return services_in(self.files[-1].text)


def prepare(folder: Path, env_file: Path, role: Role, process: Mapping[str, str]) -> Preparation:
    """Check everything, and render the files without writing them."""
    settings, role = read(env_file, role, process)
    environment, _ = with_one_topic(load(env_file, process))
    user, group = container_user()
    cores, salt = os.cpu_count() or 1, _salt(folder, role)
    is_roots, name = os.geteuid() == 0, host_name(socket.gethostname())
    vm = Vm(user, group, cores, folder.resolve(), resolver(), salt, is_roots, name)
    ports = port_mappings(environment, settings, role)
    faults = container_faults(settings, role, vm) + port_conflicts(folder, ports)
    try:
        env = prepared_env(folder, bridge(settings.tunnel.link, role))
    except SettingsError as error:
        raise SettingsError([*faults, *error.faults]) from error
    if faults:
        raise SettingsError(faults)
    files, unused = rendered(environment, settings, role, vm), unused_variables(environment, settings)
    return Preparation(settings, files, env, (user, group), ports, tuple(unused), _services_before(folder))


def _services_before(folder: Path) -> frozenset[str]:
    """By docker-compose.yml; releases up to 0.2.0 wrote it to another place, where the one of Git is now."""
    try:
        return services_in((folder / COMPOSE_FILE).read_text("utf-8", "replace"))
    except OSError:
        return frozenset(name for name, path in _SETTINGS.items() if (folder / path).exists())


def _vm_with(services: frozenset[str]) -> str:
    """The VM that runs these services; empty without any."""
    vms = {"order": "VM of an order", "replicator": "destination VM", "tunnel": "source VM"}
    return next((vm for service, vm in vms.items() if service in services), "")


def services_in(compose: str) -> frozenset[str]:
    """The services of a docker-compose.yml that was rendered here."""
    return frozenset(_SETTINGS) & frozenset(re.findall(r"^  ([a-z-]+):$", compose, re.MULTILINE))


def read(env_file: Path, role: Role, process: Mapping[str, str]) -> tuple[Settings, Role]:
    """The settings of the VM, and its role: an order has but one kind of VM, and a link without a tunnel but one VM."""
    role = ORDER_VM if describes_order(env_file, process) else role
    settings = read_either(env_file, role, process)
    return settings, DIRECT_VM if role is DESTINATION_VM and settings.route is Route.DIRECT else role


def _salt(folder: Path, role: Role) -> str:
    """The salt of the existing files, so that they stay the same; otherwise a new one."""
    path = folder / SERVICES[role][0].path
    try:
        salt = re.search(rf"^{SALT}([0-9a-f]+)$", path.read_text("utf-8"), re.MULTILINE)
    except FileNotFoundError:
        salt = None
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SettingsError([f"{path}: {cause}: prepare as the same user as before, or remove the folder"]) from error
    return salt[1] if salt else secrets.token_hex(16)
