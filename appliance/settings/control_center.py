"""The settings of the control center."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from appliance.settings.parsers import listed, listening_target, matching, optional
from appliance.settings.role import Role
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.variable import Variable

PAGE_URL = r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9][0-9]{0,4})?/?"
"""The address of a control center, as a regular expression."""


@dataclass(frozen=True, slots=True)
class ControlCenterSettings:
    """The address of the page, and who may do more than read it.

    ``token`` is empty if nobody may. ``links`` is the directory in which the control centers of one VM find each other,
    None for this link alone. ``names`` are further names by which browsers may call the page. ``url`` is where the
    other control centers' cards of this link lead; empty for ``listen``.
    """

    listen: Annotated[
        Target,
        Variable(
            "CONTROL_CENTER_LISTEN",
            "Address, host:port, of the control center's page. Port 0: a free one.",
            listening_target,
            "127.0.0.1:8082",
            roles=Role.CONSOLE,
        ),
    ]
    names: Annotated[
        tuple[str, ...],
        Variable(
            "CONTROL_CENTER_NAMES",
            "Domain names by which browsers reach the page, for example through a proxy; comma separated.",
            listed(matching(r"[A-Za-z0-9._-]+", "a domain name, such as kafka.example.com")),
            roles=Role.CONSOLE,
        ),
    ]
    token: Annotated[
        Secret,
        Variable(
            "CONSOLE_TOKEN",
            "Secret with which the page also pauses, resumes, promotes and resets; empty: the page only reads.",
            Secret,
            roles=Role.CONSOLE,
            confidential=True,
        ),
    ]
    links: Annotated[
        Path | None,
        Variable(
            "CONTROL_CENTER_LINKS",
            "Directory in which the control centers of a VM's links find each other; empty: each shows its own link.",
            optional(Path),
            roles=Role.CONSOLE,
        ),
    ]
    url: Annotated[
        str,
        Variable(
            "CONTROL_CENTER_URL",
            "Address, http://host:port, to which the VM's other control centers link; empty: as this one listens.",
            matching(f"(?:{PAGE_URL})?", "http://host:port or https://host:port"),
            roles=Role.CONSOLE,
        ),
    ]
