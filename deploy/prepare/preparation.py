"""Prepare the files of a link's folder: all checks, and all faults at once."""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import SettingsError
from appliance.settings.env_file import describes_order, load, read_either
from appliance.settings.role import Role
from appliance.settings.values import Settings
from deploy.prepare.checks import container_faults, port_conflicts
from deploy.prepare.compose_env import EnvFile, prepared_env
from deploy.prepare.vm import container_user, resolver
from deploy.render.compose import ORDER_VM, RenderedFile, rendered
from deploy.render.container import SALT, SERVICES
from deploy.render.vm import PortMapping, Vm, bridge, port_mappings


@dataclass(frozen=True, slots=True)
class Preparation:
    """The files of a VM with their future ``owner`` (user and group), its .env, and the ports that it publishes."""

    settings: Settings
    files: tuple[RenderedFile, ...]
    env: EnvFile
    owner: tuple[int, int]
    port_mappings: tuple[PortMapping, ...]


def prepare(folder: Path, env_file: Path, role: Role, process: Mapping[str, str]) -> Preparation:
    """Check everything, and render the files without writing them."""
    settings, role = read(env_file, role, process)
    environment = load(env_file, process)
    user, group = container_user()
    cores, salt = os.cpu_count() or 1, _salt(folder, role)
    vm = Vm(user, group, cores, folder.resolve(), resolver(), salt, is_roots=os.geteuid() == 0)
    ports = port_mappings(environment, settings, role)
    faults = container_faults(settings, role, vm) + port_conflicts(folder, ports)
    try:
        env = prepared_env(folder, bridge(settings.tunnel.link, role))
    except SettingsError as error:
        raise SettingsError([*faults, *error.faults]) from error
    if faults:
        raise SettingsError(faults)
    return Preparation(settings, rendered(environment, settings, role, vm), env, (user, group), ports)


def read(env_file: Path, role: Role, process: Mapping[str, str]) -> tuple[Settings, Role]:
    """The settings of the VM, and its role: a VM of an order has but one, whichever is asked for."""
    role = ORDER_VM if describes_order(env_file, process) else role
    return read_either(env_file, role, process), role


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
