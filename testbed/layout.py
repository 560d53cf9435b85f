"""The files of a cluster that is about to start; only their owner can read its directory::

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
import contextlib
import os
import secrets
import socket
import uuid
from collections.abc import Sequence
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
    """The directory of the node's files."""
    return directory / f"b{node.id}"


def make_directory(directory: Path) -> None:
    """Make the cluster's directory.

    Raises:
        SettingsError: it exists.
    """
    try:
        directory.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise SettingsError([f"{directory} exists: remove it, or choose another directory"]) from error


def write_files(plan: ClusterPlan, ports: Ports, directory: Path) -> None:
    """Write all files that the brokers read at their start into the new ``directory``."""
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
    """Create a file that only its owner can ever read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)


_ATTEMPTS = 50


def free_ports(addresses: Sequence[str], vpc: int = 0) -> Ports:
    """Three ports, each free on all the addresses now; ``vpc`` requires a particular one.

    They are released again for the brokers, so call this as late as possible.

    Raises:
        SettingsError: the required port is taken.
    """
    with contextlib.ExitStack() as held:
        if vpc:
            _hold_requested(held, addresses, vpc)
        home, controller, any_vpc = (_hold_any(held, addresses) for _ in range(3))
        return Ports(home, controller, vpc or any_vpc)


def _hold_requested(held: contextlib.ExitStack, addresses: Sequence[str], port: int) -> None:
    for address in addresses:
        try:
            held.enter_context(socket.create_server((address, port)))
        except OSError as error:
            fault = f"{address}:{port} is taken by another program: stop that, or choose another port"
            raise SettingsError([fault]) from error


def _hold_any(held: contextlib.ExitStack, addresses: Sequence[str]) -> int:
    """Hold a port that the kernel chose on the first address and that is also free on the others."""
    for _ in range(_ATTEMPTS):
        with contextlib.ExitStack() as attempt:
            first = attempt.enter_context(socket.create_server((addresses[0], 0)))
            port: int = first.getsockname()[1]
            try:
                for address in addresses[1:]:
                    attempt.enter_context(socket.create_server((address, port)))
            except OSError:
                continue
            held.push(attempt.pop_all())
            return port
    raise SettingsError([f"no port is free on all of {', '.join(addresses)}"])
