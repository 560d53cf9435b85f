"""The settings of a link, parsed once, frozen and checked."""

import enum
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.clusters import ClusterSettings, SaslMechanism, SecurityProtocol
from appliance.settings.control_center import ControlCenterSettings
from appliance.settings.engine import EngineSettings, OnGap
from appliance.settings.monitoring import AuditSettings, ConsoleSettings, LogFormat, LogSettings
from appliance.settings.parsers import choice, image, listed, yes_or_no
from appliance.settings.role import PREPARE_ALONE, TUNNEL_ENDS, Role, Side
from appliance.settings.secret import Secret
from appliance.settings.target import TargetPattern
from appliance.settings.topics import GroupSettings, Start, TopicNaming, TopicSettings
from appliance.settings.transform import OnTransformError, TransformSettings
from appliance.settings.tunnel import CertificateFiles, DnsSettings, KeyExchange, KeyFiles, SshSettings, TunnelSettings
from appliance.settings.variable import of_side, variable

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


PATTERN_PURPOSE = "Names of further brokers: *.domain:port or *.domain:first-last, comma separated."
PATTERN_ROLES = TUNNEL_ENDS | Role.REPLICATOR


class Route(enum.StrEnum):
    """The replicator's way to the source brokers."""

    TUNNEL = "tunnel"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class SecretFile:
    """The file that a secret was read from: ``variable`` is the secret's, as ``SHARED_SECRET``, ``roles`` need it."""

    variable: str
    path: Path
    content: Secret
    roles: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The values of setenv.sh, in the order of the template.

    ``replicator`` names this link in the destination cluster: ``replicator-<SOURCE_CLUSTER_ID>``. Values that the
    reading role does not need, and the environment does not give, are empty: ``""``, ``Secret("")``, ``()``.
    ``secret_files`` are those whose secrets are among the values.
    """

    replicator: str
    source: ClusterSettings = of_side(Side.SOURCE)
    broker_patterns: tuple[TargetPattern, ...] = variable(
        "SOURCE_BROKER_PATTERN", listed(TargetPattern.parse), roles=PATTERN_ROLES
    ).purpose(PATTERN_PURPOSE)
    route: Route = variable("SOURCE_ROUTE", choice(Route), "tunnel").purpose(
        "Route to the source brokers: tunnel, or direct, with neither a source VM nor the tunnel's settings."
    )
    destination: ClusterSettings = of_side(Side.DESTINATION)
    topics: TopicSettings
    transform: TransformSettings
    groups: GroupSettings
    mirror_formats: bool = variable("MM2_FORMATS", yes_or_no, "no").purpose(
        "Write MirrorMaker 2's checkpoints and heartbeats, for programs that use its Java client: yes or no."
    )
    tunnel: TunnelSettings
    dns: DnsSettings
    engine: EngineSettings
    console: ConsoleSettings
    control_center: ControlCenterSettings
    audit: AuditSettings
    log: LogSettings
    image: str = variable("IMAGE", image, roles=PREPARE_ALONE).purpose(
        "Image of the containers, with its registry, tag or digest; empty: built on each VM."
    )
    secret_files: tuple[SecretFile, ...] = ()

    @property
    def links(self) -> "tuple[Settings, ...]":
        """The links into this VM's cluster: this one; of an order, one from each other cluster."""
        return (self,)

    @property
    def route_variable(self) -> str:
        """The variable of ``route``."""
        return "GLOBAL_ROUTE" if self.source.member else "SOURCE_ROUTE"
