"""Every variable of setenv.sh, and the only place where one exists.

The template and the documentation are tests away from this table; ``parse`` reads the environment through it. A
variable without a default is required, in the roles that it names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from appliance.settings.login import Login
from appliance.settings.parsers import (
    address,
    choice,
    host,
    identifier,
    listed,
    listening_target,
    loopback_network,
    loopback_target,
    matching,
    networks,
    optional,
    regex,
    replication_factor,
    seconds,
    secret,
    text,
    topic_suffix,
    whole,
)
from appliance.settings.role import EVERY_ROLE, TUNNEL_ENDS, Role
from appliance.settings.secret import Secret
from appliance.settings.target import Target, TargetPattern
from appliance.settings.values import LogFormat, OnGap, Route, SaslMechanism, SecurityProtocol, Side, Start
from appliance.settings.variable import Variable

_T = TypeVar("_T")

_table: list[Variable[object]] = []


def _define(
    name: str,
    reason: str,
    roles: Role,
    parse: Callable[[str], _T],
    default: str | None = None,
    *,
    confidential: bool = False,
) -> Variable[_T]:
    variable = Variable(name, reason, roles, parse, default, confidential)
    _table.append(variable)
    return variable


@dataclass(frozen=True, slots=True)
class ClusterVariables:
    """The variables that both clusters have."""

    cluster_id: Variable[str]
    broker_servers: Variable[tuple[Target, ...]]
    api_key: Variable[str]
    api_secret: Variable[Secret]
    security_protocol: Variable[SecurityProtocol]
    sasl_mechanism: Variable[SaslMechanism]
    ca_file: Variable[Path | None]


def _define_cluster(side: Side, dialled_by: Role, login: Role, id_reason: str) -> ClusterVariables:
    prefix = f"{side.value.upper()}_"
    return ClusterVariables(
        _define(f"{prefix}CLUSTER_ID", id_reason, EVERY_ROLE, identifier),
        _define(
            f"{prefix}BROKER_SERVERS",
            f"The {side} brokers to begin with: host:port, comma separated.",
            dialled_by,
            listed(Target.parse),
        ),
        _define(f"{prefix}API_KEY", f"The SASL user name at the {side} cluster.", login, text),
        _define(f"{prefix}API_SECRET", "The password that belongs to it.", login, secret, confidential=True),
        _define(
            f"{prefix}SECURITY_PROTOCOL",
            "How the brokers' listener is secured: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
            login,
            choice(SecurityProtocol),
            "SASL_SSL",
        ),
        _define(
            f"{prefix}SASL_MECHANISM",
            "How the key is presented: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.",
            login,
            choice(SaslMechanism),
            "PLAIN",
        ),
        _define(
            f"{prefix}CA_FILE",
            "PEM file of the authorities that sign the brokers' certificates; empty: the system's.",
            login,
            optional(Path),
            "",
        ),
    )


SOURCE = _define_cluster(
    Side.SOURCE,
    EVERY_ROLE,
    Role.DESTINATION | Role.REPLICATOR,
    "Short name of the source cluster; the link is called replicator-<SOURCE_CLUSTER_ID>.",
)
SOURCE_BROKER_PATTERN = _define(
    "SOURCE_BROKER_PATTERN",
    "Names under which more brokers may appear: *.domain:port or *.domain:first-last, comma separated.",
    TUNNEL_ENDS,
    listed(TargetPattern.parse),
    "",
)
SOURCE_ROUTE = _define(
    "SOURCE_ROUTE",
    "How the source brokers are reached: tunnel, or direct where no tunnel is needed.",
    Role.REPLICATOR,
    choice(Route),
    "tunnel",
)

DESTINATION = _define_cluster(
    Side.DESTINATION,
    Role.REPLICATOR,
    Role.REPLICATOR,
    "Short name of the destination cluster; it must differ from the source's.",
)

REPLICA_TOPICS_SOURCE_REGEX = _define(
    "REPLICA_TOPICS_SOURCE_REGEX",
    "Topics to copy: a regular expression that matches the whole name.",
    Role.REPLICATOR,
    regex,
)
REPLICA_TOPICS_DEST_SUFFIX = _define(
    "REPLICA_TOPICS_DEST_SUFFIX",
    "What a copy's name ends with: copy makes topic.copy of topic.",
    Role.REPLICATOR,
    topic_suffix,
)
REPLICA_TOPICS_EXCLUDE_REGEX = _define(
    "REPLICA_TOPICS_EXCLUDE_REGEX",
    "Topics to leave out, though they match: a regular expression for the whole name; empty: none.",
    Role.REPLICATOR,
    regex,
    "",
)
REPLICA_TOPICS_START = _define(
    "REPLICA_TOPICS_START",
    "Where the copy of a partition begins when the link is new: earliest or latest.",
    Role.REPLICATOR,
    choice(Start),
    "earliest",
)
ON_GAP = _define(
    "ON_GAP",
    "Where the source no longer holds what comes next: stop, or record the gap and go on.",
    Role.REPLICATOR,
    choice(OnGap),
    "stop",
)
REPLICATION_FACTOR = _define(
    "REPLICATION_FACTOR",
    "Replication factor of the topics made on the destination; -1: its brokers' default.",
    Role.REPLICATOR,
    replication_factor,
    "-1",
)

SOURCE_SIDE_TUNNEL_IP = _define(
    "SOURCE_SIDE_TUNNEL_IP", "Address of the source VM, as the destination VM dials it.", TUNNEL_ENDS, host
)
DESTINATION_SIDE_TUNNEL_IP = _define(
    "DESTINATION_SIDE_TUNNEL_IP",
    "Address of the destination VM, as the source VM sees it: the firewall rule lets it in.",
    TUNNEL_ENDS,
    address,
)
SHARED_SECRET = _define(
    "SHARED_SECRET",
    "The secret that both VMs share; make one with: openssl rand -base64 33",
    TUNNEL_ENDS,
    secret,
    confidential=True,
)
SHARED_SECRET_PREVIOUS = _define(
    "SHARED_SECRET_PREVIOUS",
    "While SHARED_SECRET is being changed: the one before, until the source VM has the new one.",
    Role.DESTINATION,
    secret,
    "",
    confidential=True,
)
TUNNEL_PORT = _define("TUNNEL_PORT", "The one TCP port between the two VMs.", TUNNEL_ENDS, whole(1, 65535), "15060")
TUNNEL_AUTHORITY_FILE = _define(
    "TUNNEL_AUTHORITY_FILE",
    "PEM file of the authority that signs both ends' certificates; empty: they are made from SHARED_SECRET.",
    TUNNEL_ENDS,
    optional(Path),
    "",
)
TUNNEL_CERTIFICATE_FILE = _define(
    "TUNNEL_CERTIFICATE_FILE", "PEM file of this end's certificate.", TUNNEL_ENDS, optional(Path), ""
)
TUNNEL_KEY_FILE = _define(
    "TUNNEL_KEY_FILE", "PEM file of the private key that belongs to it.", TUNNEL_ENDS, optional(Path), ""
)
TUNNEL_SSH = _define(
    "TUNNEL_SSH",
    "SSH server, a bastion's or the source VM's own, that carries the tunnel: user@host:port; empty: none.",
    Role.DESTINATION,
    optional(Login.parse),
    "",
)
TUNNEL_SSH_KEY_FILE = _define(
    "TUNNEL_SSH_KEY_FILE", "File of the private SSH key that logs in there.", Role.DESTINATION, optional(Path), ""
)
TUNNEL_SSH_HOST_KEYS_FILE = _define(
    "TUNNEL_SSH_HOST_KEYS_FILE",
    "File of the public host keys of which that server has one, a line each as in a .pub file.",
    Role.DESTINATION,
    optional(Path),
    "",
)
TUNNEL_LISTEN = _define(
    "TUNNEL_LISTEN",
    "Where the source VM waits for the tunnel; empty: 0.0.0.0, or 127.0.0.1 where TUNNEL_SSH is its own sshd.",
    Role.SOURCE,
    optional(address),
    "",
)
TUNNEL_RESOLVER = _define(
    "TUNNEL_RESOLVER",
    "DNS server, host:port, that tells the source VM its brokers' addresses; empty: the system's.",
    Role.SOURCE,
    optional(Target.parse),
    "",
)
TUNNEL_BROKER_NETWORKS = _define(
    "TUNNEL_BROKER_NETWORKS",
    "Networks of the brokers' addresses: CIDR, comma separated; empty: all but loopback, link-local, metadata.",
    Role.SOURCE,
    networks,
    "",
)
TUNNEL_ENDPOINT_NETWORK = _define(
    "TUNNEL_ENDPOINT_NETWORK",
    "Loopback network in which the destination VM gives each source broker an address.",
    Role.DESTINATION,
    loopback_network,
    "127.64.0.0/10",
)
TUNNEL_CONNECTIONS_MAX = _define(
    "TUNNEL_CONNECTIONS_MAX",
    "Connections through the tunnel at once, at most.",
    TUNNEL_ENDS,
    whole(1, 1_000_000),
    "4096",
)
TUNNEL_IDLE_SECONDS = _define(
    "TUNNEL_IDLE_SECONDS",
    "How long a connection through the tunnel may carry nothing; Kafka's own ends give it up after ten minutes.",
    TUNNEL_ENDS,
    seconds(1, 86400),
    "900",
)
TUNNEL_STATUS_LISTEN = _define(
    "TUNNEL_STATUS_LISTEN",
    "Address, host:port, of this end's /health and /metrics; who reaches it reads them. Port 0: a free one.",
    TUNNEL_ENDS,
    listening_target,
    "127.0.0.1:8081",
)
DNS_LISTEN = _define(
    "DNS_LISTEN",
    "Loopback address, host:port, of the DNS shim on the destination VM.",
    Role.DESTINATION | Role.REPLICATOR,
    loopback_target,
    "127.0.0.1:53",
)
DNS_UPSTREAM = _define(
    "DNS_UPSTREAM",
    "DNS server, host:port, for names that are not source brokers; empty: they are refused.",
    Role.DESTINATION,
    optional(Target.parse),
    "",
)

LANES = _define(
    "LANES",
    "Transactional ids that copy side by side, fixed when the link is new; 0: one for each task.",
    Role.REPLICATOR,
    whole(0, 1000),
    "0",
)
TASKS = _define(
    "TASKS", "Spark tasks at once; 0: one for each core of this host.", Role.REPLICATOR, whole(0, 1000), "0"
)
SLICE_SECONDS = _define(
    "SLICE_SECONDS", "How long one Spark job copies at most before the next.", Role.REPLICATOR, seconds(1, 3600), "60"
)
DISCOVERY_SECONDS = _define(
    "DISCOVERY_SECONDS", "How often new topics and partitions are looked for.", Role.REPLICATOR, seconds(0.1, 3600), "3"
)
COMMIT_INTERVAL_MS = _define(
    "COMMIT_INTERVAL_MS",
    "Longest time in milliseconds that a transaction gathers records.",
    Role.REPLICATOR,
    whole(1, 60_000),
    "25",
)
COMMIT_BYTES = _define(
    "COMMIT_BYTES", "Bytes after which a transaction commits sooner.", Role.REPLICATOR, whole(2**16, 2**30), str(2**24)
)
MAX_BYTES_PER_SECOND = _define(
    "MAX_BYTES_PER_SECOND",
    "Bytes of records that are read from the source in a second, at most; 0: no bound. Read again while copying.",
    Role.REPLICATOR,
    whole(0, 2**40),
    "0",
)
TRANSACTION_TIMEOUT_SECONDS = _define(
    "TRANSACTION_TIMEOUT_SECONDS",
    "When the destination gives up a transaction whose lane died.",
    Role.REPLICATOR,
    seconds(1, 900),
    "60",
)
SPARK_MASTER = _define(
    "SPARK_MASTER",
    "Who runs the tasks: local[*], spark://host:port or k8s://url.",
    Role.REPLICATOR,
    matching(r"local(\[([0-9]+|\*)(,[0-9]+)?\])?|(spark|k8s)://\S+", "local[*], spark://host:port or k8s://url"),
    "local[*]",
)
SPARK_AUTHENTICATE_SECRET = _define(
    "SPARK_AUTHENTICATE_SECRET",
    "The secret that all parts of a Spark cluster share; with spark://host:port it has to be there.",
    Role.REPLICATOR,
    secret,
    "",
    confidential=True,
)
SPARK_DRIVER_HOST = _define(
    "SPARK_DRIVER_HOST",
    "Address of this host at which a Spark cluster reaches it; empty: that from which it reaches SPARK_MASTER.",
    Role.REPLICATOR,
    address,
    "",
)
SPARK_DRIVER_PORT = _define(
    "SPARK_DRIVER_PORT",
    "First of the three ports there that a Spark cluster dials; 0: any three.",
    Role.REPLICATOR,
    whole(0, 65_533),
    "0",
)
SPARK_DRIVER_MEMORY = _define(
    "SPARK_DRIVER_MEMORY",
    "Heap of the Spark driver's Java machine.",
    Role.REPLICATOR,
    matching(r"[1-9][0-9]*[mMgG]", "a size such as 512m or 2g"),
    "512m",
)

CONSOLE_LISTEN = _define(
    "CONSOLE_LISTEN",
    "Address, host:port, of /health, /metrics and /status; anybody who reaches it reads them. Port 0: a free one.",
    Role.REPLICATOR,
    listening_target,
    "127.0.0.1:8080",
)

LOG_FORMAT = _define("LOG_FORMAT", "What log lines look like: text or json.", EVERY_ROLE, choice(LogFormat), "text")
LOG_LEVEL = _define(
    "LOG_LEVEL",
    "What is logged: debug, info, warning or error.",
    EVERY_ROLE,
    matching("debug|info|warning|error", "debug, info, warning or error"),
    "info",
)

TABLE = tuple(_table)
"""Every variable, in the order of the template."""

GONE = {
    "TUNNEL_TARGET_NETWORKS": "use TUNNEL_BROKER_NETWORKS, which names all networks that brokers are in",
    "TUNNEL_TRANSPORT": "the tunnel is always TLS; to carry it through an SSH server, set TUNNEL_SSH instead",
    "TUNNEL_SSH_USER": "the user is part of TUNNEL_SSH=user@host:port now",
    "TUNNEL_SSH_PEER_KEYS_FILE": "use TUNNEL_SSH_HOST_KEYS_FILE, on the destination VM alone",
    "TUNNEL_SSH_BASTION": "use TUNNEL_SSH",
    "TUNNEL_SSH_BASTION_KEY_FILE": "use TUNNEL_SSH_KEY_FILE",
    "TUNNEL_SSH_BASTION_HOST_KEYS_FILE": "use TUNNEL_SSH_HOST_KEYS_FILE",
}
"""Variables that an older setenv.sh may hold, and what to do instead."""
NAMES = tuple(name for variable in TABLE for name in variable.names)
"""Every name that setenv.sh and the environment of a process may have."""
