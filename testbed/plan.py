"""The plan of a cluster, made before anything runs."""

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import SecurityProtocol
from testbed.jars import KAFKA_VERSION, on_zookeeper

_KEY = re.compile(r"[A-Za-z0-9_]+")
_SECRET = re.compile(r"[A-Za-z0-9+/=_.-]+")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A user that the cluster's brokers know.

    Raises:
        ValueError: a character that would need escaping in Kafka's login configuration.
    """

    key: str
    secret: Secret

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise ValueError("an API key has letters, digits and _ only")
        if not _SECRET.fullmatch(self.secret.reveal()):
            raise ValueError("an API secret has letters, digits and +/=_.- only")


@dataclass(frozen=True, slots=True)
class Node:
    """One broker, which is also a controller, unless the cluster has a ZooKeeper.

    ``fqdn`` is its name in its own network; None means no VPC listener. ``vpc_port`` 0 means the cluster's port there.
    """

    id: int
    address: str
    fqdn: str | None = None
    vpc_port: int = 0

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which clients may reach it."""
        return (self.address,) if self.fqdn is None else (self.fqdn, self.address)


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one cluster, the same on each node's address; ``controller`` is ZooKeeper's if there is one."""

    home: int
    controller: int
    vpc: int


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The plan of a cluster.

    ``security`` is that of both client listeners. ``api_keys`` may do everything. If there are ``limited_keys``, the
    cluster has ACLs, and these keys may do what an ACL permits. ``vpc_port`` 0 means any free port. ``heap_megabytes``
    is for each broker. ``optimised`` is for measurements: hot code is compiled, and the whole heap is allocated at the
    start, as in production. ``version`` is Kafka's; a cluster older than KRaft gets a ZooKeeper. ``properties`` are
    added to the brokers' own, and ``java_options`` to those of their JVMs. ``classes`` are directories or jars with the
    classes that the properties name.
    """

    name: str
    nodes: tuple[Node, ...]
    security: SecurityProtocol
    api_keys: tuple[ApiKey, ...] = field(default=(), repr=False)
    vpc_port: int = 0
    heap_megabytes: int = 256
    optimised: bool = False
    limited_keys: tuple[ApiKey, ...] = field(default=(), repr=False)
    version: str = KAFKA_VERSION
    properties: tuple[tuple[str, str], ...] = ()
    classes: tuple[Path, ...] = ()
    java_options: tuple[str, ...] = ()

    @classmethod
    def secure(
        cls,
        name: str,
        *,
        size: int,
        first_address: str,
        api_keys: tuple[ApiKey, ...],
        domain: str = "vpc.example",
        vpc_port: int = 0,
    ) -> "ClusterPlan":
        """SASL_SSL: node i is ``b<i>.<name>.<domain>`` and has the address ``first_address`` + i."""
        first = ipaddress.ip_address(first_address)
        nodes = tuple(Node(i, str(first + i), f"b{i}.{name}.{domain}") for i in range(size))
        return cls(name, nodes, SecurityProtocol.SASL_SSL, api_keys, vpc_port)

    @classmethod
    def plain(cls, name: str, *, address: str, heap_megabytes: int = 1024) -> "ClusterPlan":
        """One PLAINTEXT broker for measurements, reached by its address only."""
        nodes = (Node(0, address),)
        return cls(name, nodes, SecurityProtocol.PLAINTEXT, heap_megabytes=heap_megabytes, optimised=True)

    @property
    def replicas(self) -> int:
        """The default replication factor: at most three."""
        return min(3, len(self.nodes))

    @property
    def on_zookeeper(self) -> bool:
        """True when its version needs a ZooKeeper."""
        return on_zookeeper(self.version)

    def home_targets(self, ports: Ports) -> tuple[Target, ...]:
        """The brokers as clients of the home network reach them."""
        return tuple(Target(node.address, ports.home) for node in self.nodes)

    def vpc_targets(self, ports: Ports) -> tuple[Target, ...]:
        """The brokers as clients in their own network reach them; their names do not resolve elsewhere."""
        return tuple(Target(node.fqdn, node.vpc_port or ports.vpc) for node in self.nodes if node.fqdn is not None)
