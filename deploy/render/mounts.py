"""The files that the settings name, of certificates, keys and secrets, as a container sees them.

What is read once, at the start, is mounted itself: a folder may hold other files. Of the tunnel's own certificate and
SSH keys the folder is: a mounted file would stay the one that it was when the container started, and these are replaced
while it runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.values import SecretFile, Settings
from appliance.settings.variables import BY_NAME, TABLE

DIRECTORY = "/etc/appliance"
"""A container's working directory, with its settings and these files."""


@dataclass(frozen=True, slots=True)
class Mount:
    """``source`` of the VM is ``target`` in the container, where ``variable`` gets the value ``path``."""

    variable: str
    source: Path
    target: str
    path: str


def mounts(settings: Settings, role: Role) -> tuple[Mount, ...]:
    """The mounts that a service of this role needs."""
    return (
        *_certificates(settings, role),
        *_ssh_keys(settings, role),
        *_authorities(settings, role),
        *_secrets(settings, role),
    )


def _certificates(settings: Settings, role: Role) -> Iterator[Mount]:
    files = settings.tunnel.files
    if files and role & TUNNEL_ENDS:
        yield _folder("TUNNEL_AUTHORITY_FILE", files.authority)
        yield _folder("TUNNEL_CERTIFICATE_FILE", files.certificate)
        yield _folder("TUNNEL_KEY_FILE", files.key)


def _ssh_keys(settings: Settings, role: Role) -> Iterator[Mount]:
    ssh = settings.tunnel.ssh
    if ssh and role & Role.DESTINATION:
        yield _folder("TUNNEL_SSH_KEY_FILE", ssh.files.key)
        yield _folder("TUNNEL_SSH_HOST_KEYS_FILE", ssh.files.host_keys)


def _folder(variable: str, file: Path) -> Mount:
    target = f"{DIRECTORY}/{variable}"
    return Mount(variable, file.absolute().parent, target, f"{target}/{file.name}")


def secret_files(settings: Settings, role: Role) -> Iterator[SecretFile]:
    """The files of the secrets that a service of this role needs."""
    needed = {variable.name for variable in TABLE if variable.roles & role}
    return (file for file in settings.secret_files if file.variable in needed)


def _secrets(settings: Settings, role: Role) -> Iterator[Mount]:
    for file in secret_files(settings, role):
        variable = f"{file.variable}_FILE"
        target = f"{DIRECTORY}/{variable}"
        yield Mount(variable, file.path.absolute(), target, target)


def _authorities(settings: Settings, role: Role) -> Iterator[Mount]:
    for cluster in (settings.source, settings.destination):
        variable = cluster.variable("CA_FILE")
        if cluster.ca_file is not None and BY_NAME[variable].roles & role:
            target = f"{DIRECTORY}/{variable}.pem"
            yield Mount(variable, cluster.ca_file.absolute(), target, target)
