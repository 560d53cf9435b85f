"""The settings of a link, parsed once, frozen and checked."""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from appliance.settings.audit import AuditSettings
from appliance.settings.clusters import ClusterSettings, SaslMechanism, SecurityProtocol
from appliance.settings.control_center import ControlCenterSettings
from appliance.settings.groups import GroupSettings
from appliance.settings.parsers import choice, listed, matching, yes_or_no
from appliance.settings.replication import ConsoleSettings, EngineSettings, OnGap, Start, TopicNaming, TopicSettings
from appliance.settings.role import EVERY_ROLE, TUNNEL_ENDS, Role, Side
from appliance.settings.secret import Secret
from appliance.settings.target import TargetPattern
from appliance.settings.transform import OnTransformError, TransformSettings
from appliance.settings.tunnel import CertificateFiles, DnsSettings, KeyExchange, KeyFiles, SshSettings, TunnelSettings
from appliance.settings.variable import Variable

__all__ = [
    "AuditSettings",
    "CertificateFiles",
    "ClusterSettings",
    "ConsoleSettings",
    "ControlCenterSettings",
    "DnsSettings",
    "EngineSettings",
    "GroupSettings",
    "KeyExchange",
    "KeyFiles",
    "LogFormat",
    "LogSettings",
    "OnGap",
    "OnTransformError",
    "Route",
    "SaslMechanism",
    "SecretFile",
    "SecurityProtocol",
    "Settings",
    "Side",
    "SshSettings",
    "Start",
    "TopicNaming",
    "TopicSettings",
    "TransformSettings",
    "TunnelSettings",
]


class Route(enum.StrEnum):
    """The replicator's way to the source brokers."""

    TUNNEL = "tunnel"
    DIRECT = "direct"


class LogFormat(enum.StrEnum):
    """The form of log lines: for people or for machines."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The form of the log, and the lowest level that it shows."""

    format: Annotated[
        LogFormat,
        Variable("LOG_FORMAT", "Format of the log lines: text or json.", choice(LogFormat), "text", roles=EVERY_ROLE),
    ]
    level: Annotated[
        str,
        Variable(
            "LOG_LEVEL",
            "Lowest log level: debug, info, warning or error.",
            matching("debug|info|warning|error", "debug, info, warning or error"),
            "info",
            roles=EVERY_ROLE,
        ),
    ]


@dataclass(frozen=True, slots=True)
class SecretFile:
    """The file that a secret was read from: ``variable`` is the secret's, as ``SHARED_SECRET``."""

    variable: str
    path: Path
    content: Secret


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of setenv.sh, in the order of the template.

    ``replicator`` names this link in the destination cluster: ``replicator-<SOURCE_CLUSTER_ID>``. Values that the
    reading role does not need, and the environment does not give, are empty: ``""``, ``Secret("")``, ``()``.
    ``secret_files`` are those whose secrets are among the values.
    """

    replicator: str
    source: Annotated[ClusterSettings, Side.SOURCE]
    broker_patterns: Annotated[
        tuple[TargetPattern, ...],
        Variable(
            "SOURCE_BROKER_PATTERN",
            "Names of further brokers: *.domain:port or *.domain:first-last, comma separated.",
            listed(TargetPattern.parse),
            roles=TUNNEL_ENDS | Role.REPLICATOR,
        ),
    ]
    route: Annotated[
        Route,
        Variable(
            "SOURCE_ROUTE",
            "Route to the source brokers: tunnel, or direct if no tunnel is needed.",
            choice(Route),
            "tunnel",
        ),
    ]
    destination: Annotated[ClusterSettings, Side.DESTINATION]
    topics: TopicSettings
    transform: TransformSettings
    groups: GroupSettings
    mirror_formats: Annotated[
        bool,
        Variable(
            "MM2_FORMATS",
            "Write MirrorMaker 2's checkpoints and heartbeats, for programs that use its Java client: yes or no.",
            yes_or_no,
            "no",
        ),
    ]
    tunnel: TunnelSettings
    dns: DnsSettings
    engine: EngineSettings
    console: ConsoleSettings
    control_center: ControlCenterSettings
    audit: AuditSettings
    log: LogSettings
    secret_files: tuple[SecretFile, ...] = ()
