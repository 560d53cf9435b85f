"""The settings of the tunnel and of the DNS shim."""

import enum
import ipaddress
from dataclasses import dataclass, replace
from pathlib import Path

from appliance.settings.parsers import (
    Network,
    address,
    addresses,
    choice,
    host,
    listed,
    listening_target,
    loopback_network,
    loopback_target,
    networks,
    optional,
    seconds,
    together,
    whole,
    yes_or_no,
)
from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.secret import Secret
from appliance.settings.target import AllowedTargets, Login, Target, is_itself
from appliance.settings.variable import REQUIRED, made_of, variable

_DESTINATION_VM = Role.DESTINATION | Role.REPLICATOR


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """One end's identity as PEM files: the authority it trusts, its certificate with the chain, its private key."""

    authority: Path = variable("TUNNEL_AUTHORITY_FILE", together(Path), roles=TUNNEL_ENDS).purpose(
        "PEM file of the authority of both ends' certificates; empty: certificates are derived from SHARED_SECRET."
    )
    certificate: Path = variable("TUNNEL_CERTIFICATE_FILE", together(Path), roles=TUNNEL_ENDS).purpose(
        "PEM file of this end's certificate."
    )
    key: Path = variable("TUNNEL_KEY_FILE", together(Path), roles=TUNNEL_ENDS).purpose(
        "PEM file of that certificate's private key."
    )


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """SSH keys as files: our own private key, and the public keys; the server has to hold one of them."""

    key: Path = variable("TUNNEL_SSH_KEY_FILE", together(Path), roles=Role.DESTINATION).purpose(
        "File of the private SSH key for that login."
    )
    host_keys: Path = variable("TUNNEL_SSH_HOST_KEYS_FILE", together(Path), roles=Role.DESTINATION).purpose(
        "File of that server's accepted public host keys, a line each as in a .pub file."
    )


@dataclass(frozen=True, slots=True)
class SshSettings:
    """The SSH server through which the destination VM dials the tunnel: a bastion's, or the source VM's own."""

    login: Login = made_of(
        variable("TUNNEL_SSH", listed(Login.parse), roles=Role.DESTINATION).purpose(
            "SSH server that carries the tunnel: user@host:port, one for all source VMs or one for each; empty: none."
        )
    )
    files: KeyFiles = KeyFiles()


class KeyExchange(enum.StrEnum):
    """The groups of the key exchange of the tunnel's TLS: X25519 with its post-quantum hybrid, or NIST P-256."""

    X25519 = "x25519"
    P256 = "p-256"


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelSettings:
    """The encrypted connection between the two VMs.

    ``source_id`` and ``destination_id`` are the clusters'. ``server`` is the address that the destination VM, or
    the SSH server, dials; ``listen`` is the source VM's. ``others`` are further source VMs in order of preference,
    each with the SSH server on the way. ``files`` None means that the certificates, too, are made from ``secret``;
    ``ssh`` None means that the destination VM dials the source VM directly. ``resolver`` None means the system's
    DNS servers, and empty ``broker_networks`` all networks in which brokers may live at all.
    """

    source_id: str
    destination_id: str
    server: Target = made_of(
        variable("SOURCE_SIDE_TUNNEL_IP", listed(host), REQUIRED, TUNNEL_ENDS).purpose(
            "Address of the source VM, as the destination VM dials it, or of several, the preferred one first."
        )
    )
    others: tuple[tuple[Target, SshSettings | None], ...] = ()
    peer_addresses: tuple[str, ...] = variable("DESTINATION_SIDE_TUNNEL_IP", addresses, REQUIRED, TUNNEL_ENDS).purpose(
        "Address of the destination VM, as the source VM sees it, or of several; the firewall rule admits it."
    )
    secret: Secret = variable("SHARED_SECRET", Secret, REQUIRED, TUNNEL_ENDS).purpose(
        "The shared secret of both VMs; make one with: openssl rand -base64 33"
    )
    previous_secret: Secret = variable("SHARED_SECRET_PREVIOUS", Secret, roles=Role.DESTINATION).purpose(
        "The previous SHARED_SECRET during a change, until the source VM has the new one."
    )
    listen: Target = made_of(
        variable("TUNNEL_PORT", whole(1, 65535), "15060", TUNNEL_ENDS).purpose("The one TCP port between the two VMs."),
        variable("TUNNEL_LISTEN", optional(address), roles=Role.SOURCE).purpose(
            "Address on which the source VM listens; empty: 0.0.0.0, or 127.0.0.1 where TUNNEL_SSH is its own sshd."
        ),
    )
    files: CertificateFiles | None = None
    key_exchange: KeyExchange = variable("TUNNEL_KEY_EXCHANGE", choice(KeyExchange), "x25519", TUNNEL_ENDS).purpose(
        "Key exchange of the tunnel's TLS, the same on both VMs: x25519, or p-256 for hosts in FIPS mode."
    )
    ssh: SshSettings | None = None
    allowed: AllowedTargets
    resolver: Target | None = variable("TUNNEL_RESOLVER", optional(Target.parse), roles=Role.SOURCE).purpose(
        "DNS server, host:port, from which the source VM gets its brokers' addresses; empty: the system's."
    )
    broker_networks: tuple[Network, ...] = variable("TUNNEL_BROKER_NETWORKS", networks, roles=Role.SOURCE).purpose(
        "Networks of the brokers' addresses: CIDR, comma separated; empty: all but loopback, link-local, metadata."
    )
    endpoint_network: ipaddress.IPv4Network = variable(
        "TUNNEL_ENDPOINT_NETWORK", loopback_network, "127.64.0.0/10", _DESTINATION_VM
    ).purpose("Loopback network in which the destination VM gives each source broker an address.")
    connections_max: int = variable("TUNNEL_CONNECTIONS_MAX", whole(1, 1_000_000), "4096", TUNNEL_ENDS).purpose(
        "Most simultaneous connections through the tunnel."
    )
    idle_seconds: float = variable("TUNNEL_IDLE_SECONDS", seconds(1, 86400), "900", TUNNEL_ENDS).purpose(
        "Longest idle time of a connection, in seconds; Kafka's own ends close it after ten minutes."
    )
    spread: bool = variable("TUNNEL_SPREAD", yes_or_no, "no", Role.DESTINATION).purpose(
        "Use all source VMs that are well at once, in place of the first of them: yes or no."
    )
    status: Target = variable("TUNNEL_STATUS_LISTEN", listening_target, "127.0.0.1:8081", TUNNEL_ENDS).purpose(
        "Address, host:port, of this end's /health, /metrics and /status, without login. Port 0: a free one."
    )

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

    @property
    def way(self) -> str:
        """The server's address, and the SSH server on the way."""
        return f"{self.server} through {self.ssh.login}" if self.ssh else str(self.server)

    @property
    def of_each_vm(self) -> tuple["TunnelSettings", ...]:
        """The settings of the tunnel to each source VM alone."""
        return tuple(
            replace(self, server=server, ssh=ssh, others=()) for server, ssh in ((self.server, self.ssh), *self.others)
        )


@dataclass(frozen=True, slots=True)
class DnsSettings:
    """The DNS shim; ``upstream`` None means that names which aren't ours are refused."""

    listen: Target = variable("DNS_LISTEN", loopback_target, "127.0.0.1:53", _DESTINATION_VM).purpose(
        "Loopback address, host:port, of the DNS shim on the destination VM."
    )
    upstream: Target | None = variable("DNS_UPSTREAM", optional(Target.parse), roles=Role.DESTINATION).purpose(
        "DNS server, host:port, for names that are not source brokers; empty: they are refused."
    )
