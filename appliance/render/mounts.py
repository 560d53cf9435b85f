"""The files that the settings name, of certificates, keys and secrets, as a container sees them.

What is read once, at the start, is mounted itself: a folder of keys may hold others. Of the tunnel's own certificate
the folder is: a mounted file would stay the one that it was when the container started, and these are replaced while
it runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from appliance.settings import variables
from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.values import SecretFile, Settings, Transport

DIRECTORY = "/etc/appliance"
"""Where a container works, and finds its settings and these files."""


@dataclass(frozen=True, slots=True)
class Mount:
    """``source`` of the VM is ``target`` in the container, where ``variable`` gets the value ``path``."""

    variable: str
    source: Path
    target: str
    path: str


def mounts(settings: Settings, role: Role) -> tuple[Mount, ...]:
    """Those that a service of this role needs."""
    return (
        *_certificates(settings, role),
        *_ssh_keys(settings, role),
        *_authorities(settings, role),
        *_secrets(settings, role),
    )


def _certificates(settings: Settings, role: Role) -> Iterator[Mount]:
    files = settings.tunnel.files
    if files is None or not role & TUNNEL_ENDS:
        return
    named = (
        ("TUNNEL_AUTHORITY_FILE", files.authority),
        ("TUNNEL_CERTIFICATE_FILE", files.certificate),
        ("TUNNEL_KEY_FILE", files.key),
    )
    for variable, file in named:
        target = f"{DIRECTORY}/{variable}"
        yield Mount(variable, file.absolute().parent, target, f"{target}/{file.name}")


def _ssh_keys(settings: Settings, role: Role) -> Iterator[Mount]:
    ssh = settings.tunnel.ssh
    if settings.tunnel.transport is not Transport.SSH or not role & TUNNEL_ENDS:
        return
    named = []
    if ssh.files:
        named += [("TUNNEL_SSH_KEY_FILE", ssh.files.key), ("TUNNEL_SSH_PEER_KEYS_FILE", ssh.files.peer_keys)]
    if ssh.bastion and role & Role.DESTINATION:
        files = ssh.bastion.files
        named += [("TUNNEL_SSH_BASTION_KEY_FILE", files.key), ("TUNNEL_SSH_BASTION_HOST_KEYS_FILE", files.peer_keys)]
    for variable, file in named:
        target = f"{DIRECTORY}/{variable}"
        yield Mount(variable, file.absolute(), target, target)


def secret_files(settings: Settings, role: Role) -> Iterator[SecretFile]:
    """Those of the secrets that a service of this role needs."""
    needed = {variable.name for variable in variables.TABLE if variable.roles & role}
    return (file for file in settings.secret_files if file.variable in needed)


def _secrets(settings: Settings, role: Role) -> Iterator[Mount]:
    for file in secret_files(settings, role):
        variable = f"{file.variable}_FILE"
        target = f"{DIRECTORY}/{variable}"
        yield Mount(variable, file.path.absolute(), target, target)


def _authorities(settings: Settings, role: Role) -> Iterator[Mount]:
    for cluster, named in ((settings.source, variables.SOURCE), (settings.destination, variables.DESTINATION)):
        if cluster.ca_file is not None and named.ca_file.roles & role:
            target = f"{DIRECTORY}/{named.ca_file.name}.pem"
            yield Mount(named.ca_file.name, cluster.ca_file.absolute(), target, target)
