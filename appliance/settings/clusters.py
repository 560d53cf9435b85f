"""The settings of one Kafka cluster, the same for both sides."""

import enum
import re
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.logins import ClientCertificate, OAuthSettings
from appliance.settings.parsers import choice, identifier, listed, matching, optional
from appliance.settings.role import EVERY_ROLE, Member, Place, Side, prefix_of
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.variable import REQUIRED, of_each_cluster

_MSK_BROKER = re.compile(r".+\.kafka(-serverless)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?")


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
    """The SASL mechanism of the login; AWS_MSK_IAM is OAUTHBEARER with a token that AWS credentials have signed."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    AWS_MSK_IAM = "AWS_MSK_IAM"

    @property
    def on_the_wire(self) -> str:
        """The mechanism's name in the handshake with a broker."""
        return SaslMechanism.OAUTHBEARER.value if self.by_token else self.value

    @property
    def by_token(self) -> bool:
        """True if a token logs in, and no password."""
        return self in (SaslMechanism.OAUTHBEARER, SaslMechanism.AWS_MSK_IAM)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """One Kafka cluster and the login to it.

    ``ca_file`` None means the system's certificate authorities; ``certificate`` None means that we show none.
    ``member`` is the cluster's place in an order; None in a link.
    """

    side: Side
    cluster_id: str = of_each_cluster("CLUSTER_ID", identifier, REQUIRED, EVERY_ROLE, EVERY_ROLE).purpose(
        "Short name of the {side} cluster, unlike the other's; the link is called replicator-<SOURCE_CLUSTER_ID>."
    )
    bootstrap: tuple[Target, ...] = of_each_cluster(
        "BROKER_SERVERS", listed(Target.parse), REQUIRED, EVERY_ROLE
    ).purpose("Bootstrap brokers of the {side} cluster: host:port, comma separated.")
    api_key: str = of_each_cluster("API_KEY", str, REQUIRED).purpose(
        "The SASL user name at the {side} cluster, or the OAuth client id."
    )
    api_secret: Secret = of_each_cluster("API_SECRET", Secret, REQUIRED).purpose(
        "The SASL password of that user, or the secret of that client."
    )
    protocol: SecurityProtocol = of_each_cluster("SECURITY_PROTOCOL", choice(SecurityProtocol), "SASL_SSL").purpose(
        "Security of the brokers' listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."
    )
    mechanism: SaslMechanism = of_each_cluster("SASL_MECHANISM", choice(SaslMechanism), "PLAIN").purpose(
        "SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM."
    )
    ca_file: Path | None = of_each_cluster("CA_FILE", optional(Path)).purpose(
        "PEM file of the authorities that sign the brokers' certificates; empty: the system's."
    )
    certificate: ClientCertificate | None = None
    oauth: OAuthSettings = OAuthSettings()
    aws_region: str = of_each_cluster("AWS_REGION", matching("[a-z0-9-]*", "a region such as us-east-1")).purpose(
        "AWS region of the cluster, for AWS_MSK_IAM; empty: the one in the brokers' names."
    )
    member: Member | None = None

    @property
    def place(self) -> Place:
        """The cluster as texts name it: source or destination, or its id in an order."""
        return self.member or self.side

    @property
    def region(self) -> str:
        """The AWS region of the cluster; empty where neither the settings nor the brokers' names have one."""
        brokers = (_MSK_BROKER.fullmatch(target.host) for target in self.bootstrap)
        return self.aws_region or next((broker["region"] for broker in brokers if broker), "")

    @property
    def login(self) -> str:
        """The variable that names our login, with its value, as messages show it; empty where there is no login."""
        if self.protocol.authenticated:
            if self.mechanism is SaslMechanism.AWS_MSK_IAM:
                return f"{self.variable('SASL_MECHANISM')}={self.mechanism}"
            if self.mechanism is SaslMechanism.OAUTHBEARER and self.oauth.command:
                return self.variable("OAUTH_TOKEN_COMMAND")
            return f"{self.variable('API_KEY')}={self.api_key}" if self.api_key else ""
        if self.certificate and self.protocol.encrypted:
            return f"{self.variable('SSL_CERTIFICATE_FILE')}={self.certificate.file}"
        return ""

    def variable(self, name: str) -> str:
        """The name of one of this cluster's variables: ``variable("API_KEY")`` is ``SOURCE_API_KEY``."""
        return f"{prefix_of(str(self.place))}_{name}"
