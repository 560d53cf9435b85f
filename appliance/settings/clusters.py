"""The settings of one Kafka cluster, the same for both sides."""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from appliance.settings.parsers import choice, identifier, listed, optional, secret, text
from appliance.settings.role import EVERY_ROLE, Role, Side
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.variable import BothSides, Variable

_LOGIN = Role.DESTINATION | Role.REPLICATOR
"""The roles that log in to the source; only the replicator logs in to the destination."""


class SecurityProtocol(enum.StrEnum):
    """The security of a broker's listener, by Kafka's own names."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def encrypted(self) -> bool:
        """True if the connection starts with TLS."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def authenticated(self) -> bool:
        """True if SASL comes before the first request."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class SaslMechanism(enum.StrEnum):
    """The SASL mechanism that presents the API key."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """One Kafka cluster and the login to it; ``ca_file`` None means the system's certificate authorities."""

    side: Side
    cluster_id: Annotated[
        str,
        BothSides(
            Variable(
                "SOURCE_CLUSTER_ID",
                "Short name of the source cluster; the link is called replicator-<SOURCE_CLUSTER_ID>.",
                EVERY_ROLE,
                identifier,
            ),
            Variable(
                "DESTINATION_CLUSTER_ID",
                "Short name of the destination cluster; it must differ from the source's.",
                EVERY_ROLE,
                identifier,
            ),
        ),
    ]
    bootstrap: Annotated[
        tuple[Target, ...],
        BothSides.of(
            Variable(
                "BROKER_SERVERS",
                "Bootstrap brokers of the {side} cluster: host:port, comma separated.",
                EVERY_ROLE,
                listed(Target.parse),
            ),
            Role.REPLICATOR,
        ),
    ]
    api_key: Annotated[
        str,
        BothSides.of(
            Variable("API_KEY", "The SASL user name at the {side} cluster.", _LOGIN, text),
            Role.REPLICATOR,
        ),
    ]
    api_secret: Annotated[
        Secret,
        BothSides.of(
            Variable("API_SECRET", "The SASL password of that user.", _LOGIN, secret, confidential=True),
            Role.REPLICATOR,
        ),
    ]
    protocol: Annotated[
        SecurityProtocol,
        BothSides.of(
            Variable(
                "SECURITY_PROTOCOL",
                "Security of the brokers' listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
                _LOGIN,
                choice(SecurityProtocol),
                "SASL_SSL",
            ),
            Role.REPLICATOR,
        ),
    ]
    mechanism: Annotated[
        SaslMechanism,
        BothSides.of(
            Variable(
                "SASL_MECHANISM",
                "SASL mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.",
                _LOGIN,
                choice(SaslMechanism),
                "PLAIN",
            ),
            Role.REPLICATOR,
        ),
    ]
    ca_file: Annotated[
        Path | None,
        BothSides.of(
            Variable(
                "CA_FILE",
                "PEM file of the authorities that sign the brokers' certificates; empty: the system's.",
                _LOGIN,
                optional(Path),
                "",
            ),
            Role.REPLICATOR,
        ),
    ]

    def variable(self, name: str) -> str:
        """The name of one of this cluster's variables: ``variable("API_KEY")`` is ``SOURCE_API_KEY``."""
        return f"{self.side.value.upper()}_{name}"
