"""The files of certificates, keys and secrets that the settings name, as a container sees them.

A file that is read once, at the start, is mounted itself, because its folder may hold other files. For our own
certificates and SSH keys the folder is mounted. These files are replaced while the container runs, and a mounted file
would remain the one that it was at the start.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.secret import Secret
from appliance.settings.transform import read_sql
from appliance.settings.values import SecretFile, Settings
from appliance.settings.variables import BY_NAME, TABLE

DIRECTORY = "/etc/appliance"
"""The working directory of a container; it holds the container's settings and these files."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount: ``source`` on the VM is ``target`` in the container, where ``variable`` has the value ``path``."""

    variable: str
    source: Path
    target: str
    path: str


def mounts(settings: Settings, role: Role) -> tuple[Mount, ...]:
    """The mounts for a service of this role."""
    return (
        *_certificates(settings, role),
        *_ssh_keys(settings, role),
        *_page(settings, role),
        *_logins(settings, role),
        *_sql(settings, role),
        *_secrets(settings, role),
    )


def _certificates(settings: Settings, role: Role) -> Iterator[Mount]:
    files = settings.tunnel.files
    if files and role & TUNNEL_ENDS:
        yield _folder("TUNNEL_AUTHORITY_FILE", files.authority)
        yield _folder("TUNNEL_CERTIFICATE_FILE", files.certificate)
        yield _folder("TUNNEL_KEY_FILE", files.key)


def _page(settings: Settings, role: Role) -> Iterator[Mount]:
    if role & Role.CONSOLE:
        yield from (_folder(variable, file) for variable, file in settings.control_center.files.items())
        if (authorities := settings.control_center.login.ca_file) is not None:
            yield _file("CONSOLE_OIDC_CA_FILE", authorities)


def _ssh_keys(settings: Settings, role: Role) -> Iterator[Mount]:
    ssh = settings.tunnel.ssh
    if ssh and role & Role.DESTINATION:
        yield _folder("TUNNEL_SSH_KEY_FILE", ssh.files.key)
        yield _folder("TUNNEL_SSH_HOST_KEYS_FILE", ssh.files.host_keys)


def _folder(variable: str, file: Path) -> Mount:
    target = f"{DIRECTORY}/{variable}"
    return Mount(variable, file.absolute().parent, target, f"{target}/{file.name}")


def _file(variable: str, file: Path) -> Mount:
    target = f"{DIRECTORY}/{variable}.pem"
    return Mount(variable, file.absolute(), target, target)


def secret_files(settings: Settings, role: Role) -> Iterator[SecretFile]:
    """The files with secrets for a service of this role."""
    needed = {variable.name for variable in TABLE if variable.roles & role}
    return (file for file in settings.secret_files if file.variable in needed)


def read_at_start(settings: Settings, role: Role) -> Iterator[Secret]:
    """The contents of the files that a service of this role reads at its start."""
    yield from (file.content for file in secret_files(settings, role))
    if settings.transform.sql_file is not None and role & Role.REPLICATOR:
        yield Secret(read_sql(settings.transform.sql_file))


def _secrets(settings: Settings, role: Role) -> Iterator[Mount]:
    for file in secret_files(settings, role):
        variable = f"{file.variable}_FILE"
        target = f"{DIRECTORY}/{variable}"
        yield Mount(variable, file.path.absolute(), target, target)


def _sql(settings: Settings, role: Role) -> Iterator[Mount]:
    file = settings.transform.sql_file
    if file is not None and role & Role.REPLICATOR:
        target = f"{DIRECTORY}/transform.sql"
        yield Mount("REPLICA_TRANSFORM_SQL_FILE", file.absolute(), target, target)


def _logins(settings: Settings, role: Role) -> Iterator[Mount]:
    for cluster in (settings.source, settings.destination):
        files = {"CA_FILE": cluster.ca_file, "OAUTH_CA_FILE": cluster.oauth.ca_file}
        for name, file in files.items():
            variable = cluster.variable(name)
            if file is not None and BY_NAME[variable].roles & role:
                yield _file(variable, file)
        own = cluster.certificate
        if own and BY_NAME[cluster.variable("SSL_KEY_FILE")].roles & role:
            yield _folder(cluster.variable("SSL_CERTIFICATE_FILE"), own.file)
            yield _folder(cluster.variable("SSL_KEY_FILE"), own.key)
