"""How a confluent-kafka client reaches a demo cluster from its home network."""

from pathlib import Path

from appliance.settings.target import Target
from testbed.plan import ApiKey, ClusterPlan


def client_configuration(
    plan: ClusterPlan, bootstrap: tuple[Target, ...], ca_file: Path | None, api_key: ApiKey | None
) -> dict[str, str]:
    """The client's configuration; it holds the secret, so it must not be logged."""
    entries = {
        "bootstrap.servers": ",".join(str(target) for target in bootstrap),
        "security.protocol": plan.security.value,
    }
    if ca_file is not None:
        entries["ssl.ca.location"] = str(ca_file)
    if api_key is not None:
        entries |= {
            "sasl.mechanism": "PLAIN",
            "sasl.username": api_key.key,
            "sasl.password": api_key.secret.reveal(),
        }
    return entries
