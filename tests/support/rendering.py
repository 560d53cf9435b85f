"""Both VMs of a link, rendered from the settings of a test."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.target import Target
from deploy.render.compose import COMPOSE_FILE, DESTINATION_VM, SOURCE_VM, rendered
from deploy.render.vm import Vm
from tests.support.settings import REQUIRED

VM = Vm(1000, 1001, cores=2, folder=Path("/srv/link"), resolver=Target("10.0.0.2", 53), salt="5a17")
VMS = (SOURCE_VM, DESTINATION_VM)


def files(role: Role, vm: Vm = VM, **changes: str) -> dict[str, str]:
    """The text of each file, by its path."""
    return {file.path: file.text for file in _rendered(role, vm, changes)}


def modes(role: Role) -> dict[str, int]:
    """The mode of each file, by its path."""
    return {file.path: file.mode for file in _rendered(role, VM, {})}


def compose(role: Role, vm: Vm = VM, **changes: str) -> dict[str, Any]:
    """docker-compose.yml as Compose reads it, anchors resolved."""
    document = yaml.safe_load(files(role, vm, **changes)[COMPOSE_FILE])
    assert isinstance(document, dict)
    return document


def services(role: Role, vm: Vm = VM, **changes: str) -> dict[str, Any]:
    """The services in it."""
    found = compose(role, vm, **changes)["services"]
    assert isinstance(found, dict)
    return found


def _rendered(role: Role, vm: Vm, changes: Mapping[str, str]) -> Any:
    environment = REQUIRED | changes
    return rendered(environment, parse(environment, role), role, vm)
