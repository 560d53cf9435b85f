"""The settings as the rest of the appliance sees them: parsed once, frozen, already checked."""

import enum
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.login import Login
from appliance.settings.secret import Secret
from appliance.settings.target import AllowedTargets, Target, is_itself


class SecurityProtocol(enum.StrEnum):
    """How a broker's listener is secured; Kafka's own names."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def encrypted(self) -> bool:
        """Whether the connection starts with TLS."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def authenticated(self) -> bool:
        """Whether SASL comes before the first request."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class SaslMechanism(enum.StrEnum):
    """How the API key is presented."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class Side(enum.StrEnum):
    """Which cluster; the value is the prefix of its variables, in lower case."""

    SOURCE = "source"
    DESTINATION = "destination"


class Start(enum.StrEnum):
    """Where the copy of a partition begins when the link is new."""

    EARLIEST = "earliest"
    LATEST = "latest"


class OnGap(enum.StrEnum):
    """What happens where the source no longer holds what comes next."""

    STOP = "stop"
    RECORD = "record"


class Route(enum.StrEnum):
    """How the replicator reaches the source brokers."""

    TUNNEL = "tunnel"
    DIRECT = "direct"


class LogFormat(enum.StrEnum):
    """What a log line looks like."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """One Kafka cluster and how to log in to it.

    ``ca_file`` None means the system's certificate authorities.
    """

    side: Side
    cluster_id: str
    bootstrap: tuple[Target, ...]
    protocol: SecurityProtocol
    mechanism: SaslMechanism
    api_key: str
    api_secret: Secret
    ca_file: Path | None

    def variable(self, name: str) -> str:
        """The name of one of this cluster's variables: ``variable("API_KEY")`` is ``SOURCE_API_KEY``."""
        return f"{self.side.value.upper()}_{name}"


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """One end's identity as PEM files: whom it believes, its own certificate with the chain, and its private key."""

    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """SSH keys as files: our own private key, and the public keys of which the server has to hold one."""

    key: Path
    host_keys: Path


@dataclass(frozen=True, slots=True)
class SshSettings:
    """The SSH server through which the destination VM dials the tunnel: a bastion's, or the source VM's own."""

    login: Login
    files: KeyFiles


@dataclass(frozen=True, slots=True)
class TunnelSettings:
    """The encrypted connection between the two VMs.

    ``source_id`` and ``destination_id`` are the clusters'. ``ssh`` None means that the destination VM dials the source
    VM directly. ``server`` is what it dials, or has the SSH server dial, ``listen`` where the source VM waits,
    ``peer_address`` the destination VM's address as the source VM and its firewall see it. ``resolver`` is the DNS
    server with which the source VM finds its brokers (None: the system's). ``broker_networks`` are the networks that a
    target's name may resolve to; empty: all in which brokers may live at all. ``endpoint_network`` is where the
    destination VM gives each broker an address of its own. ``files`` None means that the certificates, too, are made
    from ``secret``; ``previous_secret`` is what the destination falls back on while the secret is being changed, and
    mostly empty. ``status`` is where this end serves its health and metrics. ``idle_seconds`` is how long a connection
    may carry nothing.
    """

    source_id: str
    destination_id: str
    secret: Secret
    previous_secret: Secret
    files: CertificateFiles | None
    ssh: SshSettings | None
    server: Target
    listen: Target
    peer_address: str
    allowed: AllowedTargets
    resolver: Target | None
    broker_networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    endpoint_network: ipaddress.IPv4Network
    connections_max: int
    idle_seconds: float
    status: Target

    @property
    def link(self) -> str:
        """The link's name, the same on both VMs."""
        return f"{self.source_id}-{self.destination_id}"

    @property
    def by_own_sshd(self) -> bool:
        """Whether the SSH server runs on the source VM itself, and dials the tunnel server on that VM's loopback."""
        return self.ssh is not None and is_itself(self.server.host)


@dataclass(frozen=True, slots=True)
class DnsSettings:
    """The DNS shim; ``upstream`` None means that names which aren't ours are refused."""

    listen: Target
    upstream: Target | None


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Which topics are copied, and to what."""

    regex: str
    exclude_regex: str
    suffix: str
    start: Start
    replication_factor: int


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How the replicator works; times in seconds, sizes in bytes.

    ``tasks`` 0 means one for each core, ``lanes`` 0 one for each task. The secret is the Spark cluster's; the driver's
    host "" means that by which Spark's master is reached, its port 0 any. ``max_bytes_per_second`` 0 means no bound.
    """

    lanes: int
    tasks: int
    slice_seconds: float
    discovery_seconds: float
    commit_interval: float
    commit_bytes: int
    transaction_timeout: float
    on_gap: OnGap
    spark_master: str
    spark_driver_memory: str
    spark_secret: Secret
    spark_driver_host: str
    spark_driver_port: int
    max_bytes_per_second: int

    @property
    def in_a_cluster(self) -> bool:
        """Whether tasks run on other hosts than the driver's."""
        return not self.spark_master.startswith("local")

    @property
    def task_count(self) -> int:
        """The number of tasks that copy at once: as set, else one for each core."""
        return self.tasks or os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """Where health, metrics and status are served; port 0 is any free one."""

    listen: Target


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged and how."""

    format: LogFormat
    level: str


@dataclass(frozen=True, slots=True)
class SecretFile:
    """The file that a secret was read from: ``variable`` is the secret's, as ``SHARED_SECRET``."""

    variable: str
    path: Path
    content: Secret


@dataclass(frozen=True, slots=True)
class Settings:
    """All of setenv.sh.

    ``replicator`` names this link in the destination cluster: ``replicator-<SOURCE_CLUSTER_ID>``. What the role that
    asked does not need, and the environment does not give, is empty: ``""``, ``Secret("")``, ``()``. ``secret_files``
    are those whose secrets are among the values.
    """

    replicator: str
    source: ClusterSettings
    destination: ClusterSettings
    route: Route
    tunnel: TunnelSettings
    dns: DnsSettings
    topics: TopicSettings
    engine: EngineSettings
    console: ConsoleSettings
    log: LogSettings
    secret_files: tuple[SecretFile, ...] = ()
