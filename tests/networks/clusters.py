"""The clusters of both VPCs: their names, addresses, users and topics."""

from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import SecurityProtocol
from testbed.plan import ApiKey, ClusterPlan, Node

PLAIN_USER = ApiKey("PLAIN_USER", Secret("plain-api-secret"))
SCRAM_USER = ApiKey("SCRAM_USER", Secret("scram-api-secret"))
USERS = {"PLAIN": PLAIN_USER, "SCRAM-SHA-512": SCRAM_USER}
"""The user of each mechanism; the other mechanism does not know that user."""

ORANGE = ClusterPlan(
    "orange",
    (
        Node(0, "10.1.0.10", "b0.orange.example", vpc_port=9193),
        Node(1, "10.1.0.11", "b1.orange.example", vpc_port=9194),
    ),
    SecurityProtocol.SASL_SSL,
    (PLAIN_USER,),
)
GRAPE = ClusterPlan(
    "grape",
    (Node(0, "10.2.0.10", "b0.grape.example", vpc_port=9092),),
    SecurityProtocol.SASL_SSL,
    (PLAIN_USER,),
)
PLANS = {plan.name: plan for plan in (ORANGE, GRAPE)}

IMPOSTOR = Target("impostor.orange.example", 9194)
"""Another name of b1.orange.example, which is not in its certificate."""

BROKERS = {
    "orange": {"b0.orange.example": "10.1.0.10", "b1.orange.example": "10.1.0.11", IMPOSTOR.host: "10.1.0.11"},
    "grape": {"b0.grape.example": "10.2.0.10"},
}
"""The names and addresses in each VPC."""

GRAPE_DNS = Target("10.2.0.53", 53)
"""The DNS server of the destination VPC."""

REPLICATED = "orders.placed"
COPY = "orders.placed.copy"
WAYS = (
    ("kcat", "PLAIN"),
    ("console", "PLAIN"),
    ("console", "SCRAM-SHA-512"),
    ("confluent", "PLAIN"),
    ("confluent", "SCRAM-SHA-512"),
)
"""The mechanism of each client. Debian 12's kcat has a librdkafka before 2.6.1, which sends its SCRAM nonce twice;
brokers since 3.9 refuse this with and without a tunnel. confluent-kafka has a newer one."""
OVER_SSH = "over-ssh"
OVER_BASTION = "over-bastion"
STEADY = "steady"
TOPICS = {
    "orange": [REPLICATED, OVER_SSH, OVER_BASTION, STEADY, *(f"{client}-{mechanism}" for client, mechanism in WAYS)],
    "grape": [],
}
"""The initial topics of each cluster."""
PARTITIONS = 4


def bootstrap(plan: ClusterPlan) -> Target:
    """The first broker by its name in the VPC; the others are found in its metadata."""
    node = plan.nodes[0]
    assert node.fqdn is not None
    return Target(node.fqdn, node.vpc_port)
