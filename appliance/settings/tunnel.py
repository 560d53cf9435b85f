"""The settings of the tunnel and of the DNS shim."""

import enum
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from appliance.settings.parsers import (
    address,
    choice,
    host,
    listening_target,
    loopback_network,
    loopback_target,
    networks,
    optional,
    seconds,
    whole,
)
from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.secret import Secret
from appliance.settings.target import AllowedTargets, Login, Target, is_itself
from appliance.settings.variable import Variable


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """One end's identity as PEM files: the authority it trusts, its certificate with the chain, its private key."""

    authority: Annotated[
        Path,
        Variable(
            "TUNNEL_AUTHORITY_FILE",
            "PEM file of the authority of both ends' certificates; empty: certificates are derived from SHARED_SECRET.",
            optional(Path),
            roles=TUNNEL_ENDS,
        ),
    ]
    certificate: Annotated[
        Path,
        Variable("TUNNEL_CERTIFICATE_FILE", "PEM file of this end's certificate.", optional(Path), roles=TUNNEL_ENDS),
    ]
    key: Annotated[
        Path,
        Variable("TUNNEL_KEY_FILE", "PEM file of that certificate's private key.", optional(Path), roles=TUNNEL_ENDS),
    ]


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """SSH keys as files: our own private key, and the public keys; the server has to hold one of them."""

    key: Annotated[
        Path,
        Variable(
            "TUNNEL_SSH_KEY_FILE",
            "File of the private SSH key for that login.",
            optional(Path),
            roles=Role.DESTINATION,
        ),
    ]
    host_keys: Annotated[
        Path,
        Variable(
            "TUNNEL_SSH_HOST_KEYS_FILE",
            "File of that server's accepted public host keys, a line each as in a .pub file.",
            optional(Path),
            roles=Role.DESTINATION,
        ),
    ]


@dataclass(frozen=True, slots=True)
class SshSettings:
    """The SSH server through which the destination VM dials the tunnel: a bastion's, or the source VM's own."""

    login: Annotated[
        Login,
        Variable(
            "TUNNEL_SSH",
            "SSH server, a bastion's or the source VM's own, that carries the tunnel: user@host:port; empty: none.",
            optional(Login.parse),
            roles=Role.DESTINATION,
        ),
    ]
    files: KeyFiles


class KeyExchange(enum.StrEnum):
    """The groups of the key exchange of the tunnel's TLS: X25519 with its post-quantum hybrid, or NIST P-256."""

    X25519 = "x25519"
    P256 = "p-256"


@dataclass(frozen=True, slots=True)
class TunnelSettings:
    """The encrypted connection between the two VMs.

    ``source_id`` and ``destination_id`` are the clusters'. ``server`` is the address that the destination VM, or the
    SSH server, dials; ``listen`` is the source VM's. ``files`` None means that the certificates, too, are made from
    ``secret``; ``ssh`` None means that the destination VM dials the source VM directly. ``resolver`` None means the
    system's DNS servers, and empty ``broker_networks`` all networks in which brokers may live at all.
    """

    source_id: str
    destination_id: str
    server: Annotated[
        Target,
        Variable(
            "SOURCE_SIDE_TUNNEL_IP",
            "Address of the source VM, as the destination VM dials it.",
            host,
            default=None,
            roles=TUNNEL_ENDS,
        ),
    ]
    peer_address: Annotated[
        str,
        Variable(
            "DESTINATION_SIDE_TUNNEL_IP",
            "Address of the destination VM, as the source VM sees it; the firewall rule admits it.",
            address,
            default=None,
            roles=TUNNEL_ENDS,
        ),
    ]
    secret: Annotated[
        Secret,
        Variable(
            "SHARED_SECRET",
            "The shared secret of both VMs; make one with: openssl rand -base64 33",
            Secret,
            default=None,
            roles=TUNNEL_ENDS,
            confidential=True,
        ),
    ]
    previous_secret: Annotated[
        Secret,
        Variable(
            "SHARED_SECRET_PREVIOUS",
            "The previous SHARED_SECRET during a change, until the source VM has the new one.",
            Secret,
            roles=Role.DESTINATION,
            confidential=True,
        ),
    ]
    listen: Annotated[
        Target,
        Variable("TUNNEL_PORT", "The one TCP port between the two VMs.", whole(1, 65535), "15060", roles=TUNNEL_ENDS),
        Variable(
            "TUNNEL_LISTEN",
            "Address on which the source VM listens; empty: 0.0.0.0, or 127.0.0.1 where TUNNEL_SSH is its own sshd.",
            optional(address),
            roles=Role.SOURCE,
        ),
    ]
    files: CertificateFiles | None
    key_exchange: Annotated[
        KeyExchange,
        Variable(
            "TUNNEL_KEY_EXCHANGE",
            "Key exchange of the tunnel's TLS, the same on both VMs: x25519, or p-256 for hosts in FIPS mode.",
            choice(KeyExchange),
            "x25519",
            roles=TUNNEL_ENDS,
        ),
    ]
    ssh: SshSettings | None
    allowed: AllowedTargets
    resolver: Annotated[
        Target | None,
        Variable(
            "TUNNEL_RESOLVER",
            "DNS server, host:port, from which the source VM gets its brokers' addresses; empty: the system's.",
            optional(Target.parse),
            roles=Role.SOURCE,
        ),
    ]
    broker_networks: Annotated[
        tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...],
        Variable(
            "TUNNEL_BROKER_NETWORKS",
            "Networks of the brokers' addresses: CIDR, comma separated; empty: all but loopback, link-local, metadata.",
            networks,
            roles=Role.SOURCE,
        ),
    ]
    endpoint_network: Annotated[
        ipaddress.IPv4Network,
        Variable(
            "TUNNEL_ENDPOINT_NETWORK",
            "Loopback network in which the destination VM gives each source broker an address.",
            loopback_network,
            "127.64.0.0/10",
            roles=Role.DESTINATION | Role.REPLICATOR,
        ),
    ]
    connections_max: Annotated[
        int,
        Variable(
            "TUNNEL_CONNECTIONS_MAX",
            "Most simultaneous connections through the tunnel.",
            whole(1, 1_000_000),
            "4096",
            roles=TUNNEL_ENDS,
        ),
    ]
    idle_seconds: Annotated[
        float,
        Variable(
            "TUNNEL_IDLE_SECONDS",
            "Longest idle time of a connection, in seconds; Kafka's own ends close it after ten minutes.",
            seconds(1, 86400),
            "900",
            roles=TUNNEL_ENDS,
        ),
    ]
    status: Annotated[
        Target,
        Variable(
            "TUNNEL_STATUS_LISTEN",
            "Address, host:port, of this end's /health, /metrics and /status, without login. Port 0: a free one.",
            listening_target,
            "127.0.0.1:8081",
            roles=TUNNEL_ENDS,
        ),
    ]

    @property
    def link(self) -> str:
        """The link's name, the same on both VMs."""
        return f"{self.source_id}-{self.destination_id}"

    @property
    def carrier(self) -> str:
        """The transport of the connections between the two VMs."""
        return "ssh" if self.ssh else "tcp"

    @property
    def by_own_sshd(self) -> bool:
        """True if the SSH server runs on the source VM itself, and dials the tunnel server on that VM's loopback."""
        return self.ssh is not None and is_itself(self.server.host)


@dataclass(frozen=True, slots=True)
class DnsSettings:
    """The DNS shim; ``upstream`` None means that names which aren't ours are refused."""

    listen: Annotated[
        Target,
        Variable(
            "DNS_LISTEN",
            "Loopback address, host:port, of the DNS shim on the destination VM.",
            loopback_target,
            "127.0.0.1:53",
            roles=Role.DESTINATION | Role.REPLICATOR,
        ),
    ]
    upstream: Annotated[
        Target | None,
        Variable(
            "DNS_UPSTREAM",
            "DNS server, host:port, for names that are not source brokers; empty: they are refused.",
            optional(Target.parse),
            roles=Role.DESTINATION,
        ),
    ]
