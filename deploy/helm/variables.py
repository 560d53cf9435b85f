"""The variables that each container of the chart reads, as with Docker: those of its role."""

import json

from appliance.settings.one_topic import ONE_TOPIC_NAMES
from appliance.settings.role import Role
from appliance.settings.variables import TABLE
from deploy.render.compose import DESTINATION_VM, SOURCE_VM
from deploy.render.container import SERVICES

OF_THE_CHART = {
    *("CONSOLE_LISTEN", "CONTROL_CENTER_LISTEN", "TUNNEL_LISTEN", "TUNNEL_STATUS_LISTEN"),
    *("CONTROL_CENTER_LINKS", "CONTROL_CENTER_URL", "DNS_LISTEN", "DNS_UPSTREAM"),
}
"""Variables that the chart sets itself, or that have no meaning in a pod."""

ROLES: dict[str, Role] = {
    f"doctor-{side}" if service.name == "doctor" else service.name: service.role
    for side, vm in (("source", SOURCE_VM), ("destination", DESTINATION_VM))
    for service in SERVICES[vm]
}
"""The role of each container; the doctor's differs between the sides."""


def names_of(role: Role) -> list[str]:
    """The names that the settings of a container of this role may have; a secret may be in a file of its own."""
    table = [name for variable in TABLE if variable.roles & role for name in variable.names]
    one_topic = ONE_TOPIC_NAMES if role & Role.REPLICATOR else ()
    return [name for name in (*table, *one_topic) if name not in OF_THE_CHART]


def variables_file() -> str:
    """The chart's ``files/variables.json``."""
    containers = {container: names_of(role) for container, role in ROLES.items()}
    secrets = [variable.name for variable in TABLE if variable.confidential]
    return json.dumps({**containers, "confidential": secrets}, indent=1) + "\n"
