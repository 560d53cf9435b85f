"""The units of all roles: a process each, which may do no more than its role needs.

``%i`` is the link: its settings are in ``/etc/kafka-cloud-replicator/LINK/setenv.sh``. A file ``resolv.conf`` beside
them takes the place of the host's for what dials the source through the tunnel.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

NAME = "kafka-cloud-replicator"


@dataclass(frozen=True, slots=True)
class HostRole:
    """A role: its command, and what its process needs beyond the others.

    ``binds_low_ports`` are those below 1024; ``runs_java`` makes code in its memory and reads what the machine has;
    ``dials_names`` resolves the source's brokers by the link's own resolver.
    """

    command: str
    purpose: str
    binds_low_ports: bool = False
    runs_java: bool = False
    dials_names: bool = False


ROLES: Mapping[str, HostRole] = {
    "source": HostRole("source", "the tunnel's end beside the source cluster", binds_low_ports=True),
    "destination": HostRole("destination", "the tunnel's end beside the destination, DNS shim", binds_low_ports=True),
    "replicate": HostRole("replicate", "the replicator", runs_java=True, dials_names=True),
    "console": HostRole("console", "the control center", dials_names=True),
    "order": HostRole("order run", "the process of a total order", dials_names=True),
    "spark-master": HostRole("spark master", "the master of a Spark cluster", runs_java=True),
    "spark-worker": HostRole("spark worker", "a host that copies", runs_java=True, dials_names=True),
}

_SAME = """\
User={name}
WorkingDirectory=/etc/{name}/%i
StateDirectory={name}/%i
StateDirectoryMode=0700
Environment=HOME=%S/{name}/%i APPLIANCE_PROGRAM=/opt/{name}/bin/appliance
Restart=always
RestartSec=2
RestartPreventExitStatus=2
TimeoutStopSec=60
KillMode=mixed
LimitNOFILE=1048576
LimitCORE=0
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateDevices=yes
PrivateTmp=yes
RemoveIPC=yes
KeyringMode=private
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service landlock_create_ruleset landlock_add_rule landlock_restrict_self
SystemCallFilter=~@privileged
"""


def unit(role: HostRole) -> str:
    """The text of a role's unit."""
    lines = [
        "# Written by python -m deploy.systemd: changes belong into systemctl edit.",
        "[Unit]",
        f"Description=Kafka link %i: {role.purpose}",
        "Documentation=man:appliance(1)",
        "Wants=network-online.target",
        "After=network-online.target nss-lookup.target",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart=/opt/{NAME}/bin/appliance {role.command}",
        *_SAME.format(name=NAME).splitlines(),
        *_own(role),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def _own(role: HostRole) -> Iterator[str]:
    capability = "CAP_NET_BIND_SERVICE" if role.binds_low_ports else ""
    yield f"CapabilityBoundingSet={capability}"
    yield f"AmbientCapabilities={capability}"
    yield "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX" + (" AF_NETLINK" if role.runs_java else "")
    if not role.binds_low_ports:
        yield "PrivateUsers=yes"
    if not role.runs_java:
        yield "MemoryDenyWriteExecute=yes"
        yield "ProcSubset=pid"
    if role.dials_names:
        yield f"BindReadOnlyPaths=-/etc/{NAME}/%i/resolv.conf:/etc/resolv.conf"


def files() -> Mapping[str, str]:
    """All files: a unit for each role, and the user of all."""
    units = {f"{NAME}-{name}@.service": unit(role) for name, role in ROLES.items()}
    return {**units, f"{NAME}.conf": f'u {NAME} - "Kafka links" /var/lib/{NAME}\n'}
