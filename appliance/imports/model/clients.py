"""Keys of Kafka's clients, which both programs have for each of their clusters, as variables of a side."""

from collections.abc import Mapping

from appliance.imports.model.jaas import password_login
from appliance.imports.model.verdict import (
    Rule,
    Translation,
    Verdict,
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
_TO_PEM = "convert the authorities to PEM (keytool -list -rfc -keystore FILE), and name that file in {}"

SHARED: dict[str, Rule] = {
    "ssl.truststore.type": by_value(
        {"pem": needless("PEM is the only format")}, left("PEM is the only format of the authorities")
    ),
    "ssl.truststore.password": left("a PEM file needs no password"),
    "ssl.truststore.certificates": left(
        "write them into a PEM file, and name it in SOURCE_CA_FILE, DESTINATION_CA_FILE"
    ),
    "ssl.endpoint.identification.algorithm": by_value(
        {"https": needless("names of brokers are always checked")}, left("names of brokers are always checked")
    ),
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
    "isolation.level": by_value(
        {"read_committed": needless("only committed records are copied")},
        left("only committed records are copied"),
    ),
    "group.id": left("the link has no consumer group: its positions are in the destination cluster"),
    "client.rack": left("the link reads from leaders"),
    "check.crcs": by_value({"true": needless("every checksum is checked")}, left("every checksum is checked")),
}
"""The keys of a consumer at the source."""

PRODUCER: dict[str, Rule] = {
    "acks": by_value(
        {"all": needless("all acknowledge"), "-1": needless("all acknowledge")}, left("the link waits for all replicas")
    ),
    "enable.idempotence": by_value(
        {"true": needless("the link writes in transactions")}, left("the link writes in transactions")
    ),
    "compression.type": left("a copied batch keeps its compression"),
    "max.in.flight.requests.per.connection": left(TUNING),
    "transactional.id": left("the link's transactional ids are replicator-<SOURCE_CLUSTER_ID>.lane-N"),
}
"""The keys of a producer at the destination."""


def client_rules(side: Side, truststore_type: str) -> Mapping[str, Rule]:
    """The rules of a client of the cluster on that side; ``truststore_type`` is its file's."""
    prefix = side.value.upper()
    ca_file = f"{prefix}_CA_FILE"
    is_pem = truststore_type.strip().lower() == "pem"
    return SHARED | {
        "bootstrap.servers": carried(f"{prefix}_BROKER_SERVERS", _servers),
        "security.protocol": carried(f"{prefix}_SECURITY_PROTOCOL"),
        "sasl.mechanism": carried(f"{prefix}_SASL_MECHANISM"),
        "sasl.jaas.config": _login(prefix),
        "ssl.truststore.location": carried(ca_file) if is_pem else left(_TO_PEM.format(ca_file)),
    }


def _servers(value: str) -> str:
    """The list without the protocols that Kafka's clients ignore in it: ``SASL_SSL://host:9092``."""
    servers = (server.strip() for server in value.split(","))
    return ",".join(server.rpartition("://")[2] for server in servers if server)


def _login(prefix: str) -> Rule:
    def rule(value: str) -> Translation:
        try:
            check_not_looked_up(value)
            login = password_login(value)
            check_one_line(login.user + login.password.reveal())
        except ValueError as error:
            return Translation(Verdict.LEFT, str(error))
        variables = {f"{prefix}_API_KEY": login.user, f"{prefix}_API_SECRET": login.password.reveal()}
        return Translation(Verdict.CARRIED, "", variables)

    return rule


def left_of_a_client(key: str, role: str) -> Translation:
    """The outcome for a key of a client that has no rule, or whose ``role`` the link does not have on that side."""
    if key in SHARED or key in ("bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config"):
        return Translation(Verdict.LEFT, f"one login for each cluster, and not a {role}'s own here")
    if key.startswith(("ssl.keystore.", "ssl.key.")):
        return Translation(Verdict.LEFT, "client certificates for brokers are not supported")
    if key.startswith("sasl."):
        return Translation(Verdict.LEFT, "logins are by SASL PLAIN or SCRAM, with user name and password")
    if key.startswith("ssl."):
        return Translation(Verdict.LEFT, "TLS is the system's OpenSSL")
    if key in ("interceptor.classes", "metric.reporters") or key.startswith("confluent.monitoring."):
        return Translation(Verdict.LEFT, "no Java runs in the link's clients; for metrics see docs/monitoring.md")
    return Translation(Verdict.LEFT, TUNING)
