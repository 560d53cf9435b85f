"""The files of certificates, keys and secrets that the settings name, as a container sees them.

A file that is read once, at the start, is mounted itself, because its folder may hold other files. For our own
certificates and SSH keys the folder is mounted. These files are replaced while the container runs, and a mounted file
would remain the one that it was at the start.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.clusters import ClusterSettings
from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.secret import Secret
from appliance.settings.transform import read_sql
from appliance.settings.values import SecretFile, Settings
from appliance.settings.variable import declared_within

DIRECTORY = "/etc/appliance"
"""The working directory of a container; it holds the container's settings and these files."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount: ``source`` on the VM is ``target`` in the container, where ``variable`` has the value ``path``."""

    variable: str
    source: Path
    target: str
    path: str


def mounts(settings: Settings, role: Role) -> Iterator[Mount]:
    """The mounts for a service of this role."""
    certificates, ssh, sql = settings.tunnel.files, settings.tunnel.ssh, settings.transform.sql_file
    if certificates and role & TUNNEL_ENDS:
        yield _folder("TUNNEL_AUTHORITY_FILE", certificates.authority)
        yield _folder("TUNNEL_CERTIFICATE_FILE", certificates.certificate)
        yield _folder("TUNNEL_KEY_FILE", certificates.key)
    if ssh and role & Role.DESTINATION:
        yield _folder("TUNNEL_SSH_KEY_FILE", ssh.files.key)
        yield _folder("TUNNEL_SSH_HOST_KEYS_FILE", ssh.files.host_keys)
    if role & Role.CONSOLE:
        yield from (_folder(variable, file) for variable, file in settings.control_center.files.items())
        yield from _file("CONSOLE_OIDC_CA_FILE", settings.control_center.login.ca_file, "CONSOLE_OIDC_CA_FILE.pem")
    for cluster in (*(link.source for link in settings.links), settings.destination):
        yield from _of_login(cluster, role)
    if role & Role.REPLICATOR:
        yield from _file("REPLICA_TRANSFORM_SQL_FILE", sql, "transform.sql")
    for file in secret_files(settings, role):
        yield from _file(f"{file.variable}_FILE", file.path, f"{file.variable}_FILE")


def _of_login(cluster: ClusterSettings, role: Role) -> Iterator[Mount]:
    roles = {variable.name: variable.roles for variable in declared_within(ClusterSettings, cluster.place)}
    for name, file in {"CA_FILE": cluster.ca_file, "OAUTH_CA_FILE": cluster.oauth.ca_file}.items():
        variable = cluster.variable(name)
        if roles[variable] & role:
            yield from _file(variable, file, f"{variable}.pem")
    own = cluster.certificate
    if own and roles[cluster.variable("SSL_KEY_FILE")] & role:
        yield _folder(cluster.variable("SSL_CERTIFICATE_FILE"), own.file)
        yield _folder(cluster.variable("SSL_KEY_FILE"), own.key)


def _folder(variable: str, file: Path) -> Mount:
    target = f"{DIRECTORY}/{variable}"
    return Mount(variable, file.absolute().parent, target, f"{target}/{file.name}")


def _file(variable: str, file: Path | None, name: str) -> Iterator[Mount]:
    """The mount of the file itself, by this name in ``DIRECTORY``; none without a file."""
    if file is not None:
        yield Mount(variable, file.absolute(), f"{DIRECTORY}/{name}", f"{DIRECTORY}/{name}")


def secret_files(settings: Settings, role: Role) -> Iterator[SecretFile]:
    """The files with secrets for a service of this role."""
    return (file for file in settings.secret_files if file.roles & role)


def read_at_start(settings: Settings, role: Role) -> Iterator[Secret]:
    """The contents of the files that a service of this role reads at its start."""
    yield from (file.content for file in secret_files(settings, role))
    if settings.transform.sql_file is not None and role & Role.REPLICATOR:
        yield Secret(read_sql(settings.transform.sql_file))
