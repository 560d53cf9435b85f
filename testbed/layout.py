"""The files of a cluster that is about to start; its directory can be read by its owner only::

    <directory>/
        ca.pem              what clients trust
        b<id>/              one for each node
            server.properties
            broker.pem      its key and certificates
            data/           the log directory, made by formatting
            kafka.log       all that the process prints
        zookeeper/          ZooKeeper's own, where the version has one

Nothing else of a cluster is on disk.
"""

import base64
import os
import secrets
import uuid
from pathlib import Path

from appliance.errors import SettingsError
from appliance.settings.secret import Secret
from testbed.certificates import CertificateAuthority
from testbed.plan import ApiKey, ClusterPlan, Node, Ports
from testbed.properties import server_properties


def new_cluster_id() -> str:
    """A random id as Kafka writes them: a UUID in URL-safe base 64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


def node_directory(directory: Path, node: Node) -> Path:
    """Where the node's files are."""
    return directory / f"b{node.id}"


def make_directory(directory: Path) -> None:
    """Makes the cluster's directory.

    Raises:
        SettingsError: it exists.
    """
    try:
        directory.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise SettingsError([f"{directory} exists: remove it, or choose another directory"]) from error


def write_files(plan: ClusterPlan, ports: Ports, directory: Path) -> None:
    """Writes all that the brokers read at their start into the new ``directory``."""
    authority = CertificateAuthority.create(f"{plan.name} demo authority")
    if plan.security.encrypted:
        (directory / "ca.pem").write_bytes(authority.certificate_pem)
    internal = ApiKey(f"broker_{secrets.token_hex(4)}", Secret(secrets.token_hex(16)))
    for node in plan.nodes:
        own = node_directory(directory, node)
        own.mkdir()
        properties = server_properties(plan, node, ports, own, internal)
        write_private(own / "server.properties", properties.encode())
        if plan.security.encrypted:
            write_private(own / "broker.pem", authority.issue(node.hosts))


def write_private(path: Path, content: bytes) -> None:
    """Writes a new file that only its owner can read, from its first moment on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
