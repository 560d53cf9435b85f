"""The page of the alerts: what each means, and what the person who is called does."""

from deploy.docs.markdown import linked
from deploy.monitoring.alerts import ALERTS, TOPIC, Alert

_MEANINGS = {
    "KafkaReplicatorNotScraped": "Prometheus has no target of the job `kafka-replicator`.",
    "KafkaReplicatorSilent": (
        "The replicator does not answer at half of the scrapes, or has no snapshot younger than 30 s."
    ),
    "KafkaReplicatorPartitionStopped": "Partitions of a topic wait for your decision.",
    "KafkaReplicatorTopicStopped": "No partition of a topic can be copied.",
    "KafkaReplicatorNotCopying": "The link is `never run`, `failing`, `nothing matches`, or `stopped` as a whole.",
    "KafkaReplicatorRestarts": "More than four runs of the replicator have copied within 15 minutes.",
    "KafkaReplicatorStuck": (
        "Of partitions of a topic nothing is copied though there is something, also while the replicator "
        "restarts again and again."
    ),
    "KafkaReplicatorPartitionUnknown": (
        "Partitions of a topic, or their copies, are unknown though both clusters answer."
    ),
    "KafkaReplicatorSourceUnreachable": "The source cluster does not answer.",
    "KafkaReplicatorDestinationUnreachable": "The destination cluster does not answer.",
    "KafkaReplicatorLag": "An active topic is more than 60 s behind.",
    "KafkaReplicatorHeld": (
        "An open transaction has held a partition for more than 15 minutes. Held records are in no lag."
    ),
    "KafkaReplicatorGap": (
        "The gap ledger has a new entry, or had one when it was scraped for the first time, or after an hour "
        "without scrapes."
    ),
    "KafkaReplicatorDeadLetters": "SQL in flight fails on records.",
    "KafkaReplicatorStandbyMissing": "Fewer replicators stand by than `REPLICATOR_STANDBYS`, or nobody knows.",
    "KafkaReplicatorCommandUnfinished": "A topic is still `failing over`, `failing back` or `resetting`.",
    "KafkaReplicatorGroupsNotSynced": (
        "Groups are refused at the destination, or their offsets are unknown, or nobody can see them."
    ),
    "KafkaReplicatorAuditBehind": "The [audit table](../run/audit.md) is more than two hours behind.",
    "KafkaTunnelNotScraped": "Prometheus has no target of the job `kafka-tunnel`.",
    "KafkaTunnelEndSilent": "An end of the tunnel does not answer.",
    "KafkaTunnelServerUnreachable": "The destination VM does not reach the source VM.",
    "KafkaTunnelSourceVmAway": "One of several source VMs is not well; another one carries.",
    "KafkaTunnelBrokersUnknown": "The source cluster does not list its brokers.",
    "KafkaTunnelBrokerNotOpen": "A broker is refused by the allow-list, or has no endpoint.",
    "KafkaTunnelConnectionsRefused": (
        "Connections were refused as `identity`, `full` or `crowd` within the last 5 minutes."
    ),
    "KafkaTunnelCertificateExpires": "A certificate expires in less than 30 days.",
    "KafkaTunnelPeerCertificateExpires": (
        "The other end's certificate expires in less than 30 days, for a Prometheus that reaches one VM alone."
    ),
    "KafkaTunnelPreviousSecret": "`SHARED_SECRET_PREVIOUS` is still set.",
    "KafkaOrderSilent": "The process of an order does not answer, or has not looked at the clusters for 30 s.",
    "KafkaOrderNoHome": "Partitions have no home: nothing of them is ordered.",
    "KafkaOrderHomeSilent": "The process has heard nothing of a home that works.",
    "KafkaOrderClusterUnreachable": "A cluster does not answer.",
    "KafkaOrderStopped": "A partition waits for your decision in a cluster.",
    "KafkaOrderBehind": "A `T-global` lacks records that the home had five minutes ago.",
    "KafkaOrderAlone": "What a home shows is in no other cluster.",
}
"""The condition of each alert in words."""

_HEAD = """\
# Alerts

The alerts of [Prometheus](../run/monitoring.md#load-the-alerts), each with its severity and the time for which its
condition must hold. A critical one calls somebody: records are not copied. A warning is for the same day. The commands
are those of a VM with containers; the chart's alerts have those of Kubernetes.
"""


def page() -> str:
    """The text of docs/night/alerts.md."""
    return _HEAD + "".join(map(_section, ALERTS))


def _section(alert: Alert) -> str:
    held = "at once" if alert.holds == "0m" else f"after {alert.holds}"
    todo = linked(alert.description.replace(TOPIC, "TOPIC"))
    return f"\n## {alert.name}\n\n**{alert.severity.capitalize()}**, {held}. {_MEANINGS[alert.name]}\n\n{todo}\n"
