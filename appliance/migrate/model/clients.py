"""Keys of Kafka's clients, which both programs have for each of their clusters, as variables of a side."""

from collections.abc import Callable, Mapping

from appliance.migrate.model.jaas import password_login
from appliance.migrate.model.verdict import (
    Rule,
    Translation,
    Verdict,
    always,
    by_value,
    carried,
    check_not_looked_up,
    left,
    needless,
)
from appliance.settings.role import Side
from appliance.settings.shell_lines import check_one_line

TUNING = "the link chooses sizes and times of its requests by itself"

_NO_KERBEROS = "Kerberos is not supported"
_ONE_PEM = (
    "convert key and certificate to PEM (openssl pkcs12 -in FILE), and name the files in {0}_SSL_CERTIFICATE_FILE"
)
_OF_AWS = ".IAMLoginModule required;"
_TO_PEM = "convert the authorities to PEM (keytool -list -rfc -keystore FILE), and name that file in {}"

SHARED: dict[str, Rule] = {
    "ssl.truststore.type": by_value(
        {"pem": needless("PEM is the only format")}, left("PEM is the only format of the authorities")
    ),
    "ssl.truststore.password": left("a PEM file needs no password"),
    "ssl.truststore.certificates": left(
        "write them into a PEM file, and name it in SOURCE_CA_FILE, DESTINATION_CA_FILE"
    ),
    "ssl.keystore.type": by_value(
        {"pem": needless("PEM is the only format")}, left("PEM is the only format of certificates")
    ),
    "ssl.keystore.password": left("a PEM file needs no password; its key's is ssl.key.password"),
    "ssl.endpoint.identification.algorithm": always("names of brokers are always checked", "https"),
    "ssl.protocol": left("TLS 1.2 and 1.3, by the system's OpenSSL"),
    "ssl.enabled.protocols": left("TLS 1.2 and 1.3, by the system's OpenSSL"),
    "ssl.cipher.suites": left("the ciphers are those of the system's OpenSSL"),
    "ssl.provider": left("TLS is the system's OpenSSL"),
    "sasl.kerberos.service.name": left(_NO_KERBEROS),
    "client.id": left("the link's clients are named replicator-<SOURCE_CLUSTER_ID>"),
}
"""The keys that mean the same on both sides."""

CONSUMER: dict[str, Rule] = {
    "auto.offset.reset": carried("REPLICA_TOPICS_START"),
    "isolation.level": always("only committed records are copied", "read_committed"),
    "group.id": left("the link has no consumer group: its positions are in the destination cluster"),
    "client.rack": left("the link reads from leaders"),
    "check.crcs": always("every checksum is checked", "true"),
}
"""The keys of a consumer at the source."""

PRODUCER: dict[str, Rule] = {
    "acks": by_value(
        {"all": needless("all acknowledge"), "-1": needless("all acknowledge")}, left("the link waits for all replicas")
    ),
    "enable.idempotence": always("the link writes in transactions", "true"),
    "compression.type": left("a copied batch keeps its compression"),
    "max.in.flight.requests.per.connection": left(TUNING),
    "transactional.id": left("the link's transactional ids are replicator-<SOURCE_CLUSTER_ID>.lane-N"),
}
"""The keys of a producer at the destination."""


def client_rules(side: Side, type_of: Callable[[str], str]) -> Mapping[str, Rule]:
    """The rules of a client of the cluster on that side; ``type_of`` gives its ``ssl.<store>.type``."""
    prefix = side.value.upper()
    trusted, own = (type_of(store).strip().lower() == "pem" for store in ("truststore", "keystore"))
    ca_file, oauth = f"{prefix}_CA_FILE", "sasl.oauthbearer"
    return SHARED | {
        "bootstrap.servers": carried(f"{prefix}_BROKER_SERVERS", _servers),
        "security.protocol": carried(f"{prefix}_SECURITY_PROTOCOL"),
        "sasl.mechanism": carried(f"{prefix}_SASL_MECHANISM"),
        "sasl.jaas.config": _login(prefix),
        "ssl.truststore.location": carried(ca_file) if trusted else left(_TO_PEM.format(ca_file)),
        "ssl.keystore.location": _own_certificate(prefix) if own else left(_ONE_PEM.format(prefix)),
        "ssl.key.password": carried(f"{prefix}_SSL_KEY_PASSWORD", str),
        f"{oauth}.token.endpoint.url": carried(f"{prefix}_OAUTH_TOKEN_URL"),
        f"{oauth}.scope": carried(f"{prefix}_OAUTH_SCOPE"),
        f"{oauth}.client.credentials.client.id": carried(f"{prefix}_API_KEY"),
        f"{oauth}.client.credentials.client.secret": carried(f"{prefix}_API_SECRET", str),
    }


def _own_certificate(prefix: str) -> Rule:
    """The rule for a PEM file with our key and certificate, as Kafka has them in one (KIP-651)."""
    certificate, key = (carried(f"{prefix}_SSL_{name}_FILE") for name in ("CERTIFICATE", "KEY"))

    def rule(value: str) -> Translation:
        first, second = certificate(value), key(value)
        return Translation(first.verdict, first.reason, {**first.variables, **second.variables})

    return rule


def _servers(value: str) -> str:
    """The list without the protocols that Kafka's clients ignore in it: ``SASL_SSL://host:9092``."""
    servers = (server.strip() for server in value.split(","))
    return ",".join(server.rpartition("://")[2] for server in servers if server)


def _login(prefix: str) -> Rule:
    def rule(value: str) -> Translation:
        if _OF_AWS in value:
            return Translation(Verdict.NEEDLESS, "AWS credentials are found as AWS's programs do")
        try:
            check_not_looked_up(value)
            login = password_login(value)
            check_one_line(login.user + login.password.reveal())
        except ValueError as error:
            return Translation(Verdict.LEFT, str(error))
        variables = {f"{prefix}_API_KEY": login.user, f"{prefix}_API_SECRET": login.password.reveal()}
        if login.scope:
            variables[f"{prefix}_OAUTH_SCOPE"] = login.scope
        if login.extensions:
            variables[f"{prefix}_OAUTH_EXTENSIONS"] = ",".join("=".join(pair) for pair in login.extensions)
        return Translation(Verdict.CARRIED, "", variables)

    return rule


def left_of_a_client(key: str, role: str) -> Translation:
    """The outcome for a key of a client that has no rule, or whose ``role`` the link does not have on that side."""
    if key in SHARED or key in ("bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config"):
        return Translation(Verdict.LEFT, f"one login for each cluster, and not a {role}'s own here")
    if key.startswith("ssl.keystore."):
        return Translation(Verdict.LEFT, "name PEM files in SSL_CERTIFICATE_FILE and SSL_KEY_FILE of the side")
    if key.startswith("sasl."):
        return Translation(Verdict.LEFT, "see docs/run/logins.md for what a login has here")
    if key.startswith("ssl."):
        return Translation(Verdict.LEFT, "TLS is the system's OpenSSL")
    if key in ("interceptor.classes", "metric.reporters") or key.startswith("confluent.monitoring."):
        return Translation(Verdict.LEFT, "no Java runs in the link's clients; for metrics see docs/run/monitoring.md")
    return Translation(Verdict.LEFT, TUNING)
