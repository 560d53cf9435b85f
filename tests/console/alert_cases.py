"""For each alert: time series during which it does not fire at first, and then does."""

from collections.abc import Mapping
from dataclasses import dataclass

REPLICATOR = 'job="kafka-replicator",instance="10.2.0.5:8080",link="orange-grape"'
TUNNEL = 'job="kafka-tunnel",instance="10.2.0.5:8081",link="orange-grape"'
ORDER = 'job="kafka-order",instance="10.3.0.4:8080",link="order"'
ON_REPLICATOR, ON_TUNNEL = "orange-grape (10.2.0.5:8080)", "orange-grape (10.2.0.5:8081)"
ON_ORDER = "order (10.3.0.4:8080)"


@dataclass(frozen=True, slots=True)
class Case:
    """The alert ``alert`` is quiet at minute ``quiet``, and fires at minute ``firing`` with ``labels`` and ``summary``.

    ``series`` has the values of each time series, minute by minute, as promtool writes them: ``0x9`` is ten times 0.
    """

    alert: str
    series: Mapping[str, str]
    quiet: int
    firing: int
    summary: str
    labels: Mapping[str, str]

    @property
    def target(self) -> str:
        """The labels of the target, as in a selector."""
        targets = {"KafkaReplicator": REPLICATOR, "KafkaTunnel": TUNNEL, "KafkaOrder": ORDER}
        return next(target for name, target in targets.items() if self.alert.startswith(name))


def _case(alert: str, series: Mapping[str, str], quiet: int, firing: int, summary: str, **labels: str) -> Case:
    return Case(alert, series, quiet, firing, summary, labels)


CASES = (
    _case(
        "KafkaReplicatorNotScraped",
        {f"up{{{REPLICATOR}}}": "1x9 stale"},
        11,
        12,
        "Prometheus has no target of the job kafka-replicator.",
    ),
    _case(
        "KafkaReplicatorSilent",
        {f"up{{{REPLICATOR}}}": "1x30", f"kafka_replicator_source_reachable{{{REPLICATOR}}}": "0x9 stale"},
        12,
        13,
        f"Nothing is known of the link {ON_REPLICATOR}.",
    ),
    _case(
        "KafkaReplicatorPartitionStopped",
        {
            f'kafka_replicator_stopped{{topic="orders",partition="0",{REPLICATOR}}}': "0x9 1x30",
            f'kafka_replicator_stopped{{topic="orders",partition="1",{REPLICATOR}}}': "0x9 1x30",
            f'kafka_replicator_stopped{{topic="payments",partition="0",{REPLICATOR}}}': "0x30",
        },
        10,
        11,
        f"The topic orders has stopped partitions: 2, link {ON_REPLICATOR}.",
        topic="orders",
    ),
    _case(
        "KafkaReplicatorTopicStopped",
        {f'kafka_replicator_topic_stopped{{topic="or`;ders",{REPLICATOR}}}': "0x9 1x30"},
        10,
        11,
        f"No partition of the topic or`;ders can be copied, link {ON_REPLICATOR}.",
        topic="or`;ders",
    ),
    _case(
        "KafkaReplicatorNotCopying",
        {
            f'kafka_replicator_link_state{{state="copying",{REPLICATOR}}}': "1x9 stale",
            f'kafka_replicator_link_state{{state="failing",{REPLICATOR}}}': "_x10 1x30",
        },
        12,
        13,
        f"The link {ON_REPLICATOR} does not copy: it is failing.",
        state="failing",
    ),
    _case(
        "KafkaReplicatorNotCopying",
        {
            f'kafka_replicator_link_state{{state="stopped",{REPLICATOR}}}': "1x40",
            f'kafka_replicator_stopped{{topic="orders",partition="0",{REPLICATOR}}}': "1x9 0x30",
            f'kafka_replicator_topic_stopped{{topic="orders",{REPLICATOR}}}': "0x40",
        },
        13,
        14,
        f"The link {ON_REPLICATOR} does not copy: it is stopped.",
        state="stopped",
    ),
    _case(
        "KafkaReplicatorRestarts",
        {
            f'kafka_replicator_lane_owner_since_seconds{{lane="0",run="{run}",host="vm",{REPLICATOR}}}': values
            for run, values in {
                "a": "7x9 stale",
                "b": "_x10 7 stale",
                "c": "_x11 7 stale",
                "d": "_x12 7 stale",
                "e": "_x13 7x10",
            }.items()
        },
        12,
        13,
        f"The replicator starts again and again: 5 runs within 15 minutes, link {ON_REPLICATOR}.",
    ),
    _case(
        "KafkaReplicatorStuck",
        {f'kafka_replicator_stuck{{topic="orders",partition="0",{REPLICATOR}}}': "0x9 1 0 1 0 1 0 1 0 1 0"},
        11,
        12,
        f"Nothing is copied of partitions of the topic orders: 1, link {ON_REPLICATOR}.",
        topic="orders",
    ),
    _case(
        "KafkaReplicatorPartitionUnknown",
        {
            f'kafka_replicator_unknown{{topic="orders",partition="0",{REPLICATOR}}}': "0x9 1x30",
            f'kafka_replicator_unknown{{topic="orders",partition="1",{REPLICATOR}}}': "0x40",
            f"kafka_replicator_source_reachable{{{REPLICATOR}}}": "1x40",
            f"kafka_replicator_destination_reachable{{{REPLICATOR}}}": "1x40",
        },
        14,
        15,
        f"Of the topic orders, partitions are unknown: 1, link {ON_REPLICATOR}.",
        topic="orders",
    ),
    _case(
        "KafkaReplicatorSourceUnreachable",
        {f"kafka_replicator_source_reachable{{{REPLICATOR}}}": "1x9 0x30"},
        10,
        11,
        f"The source cluster does not answer, link {ON_REPLICATOR}.",
    ),
    _case(
        "KafkaReplicatorDestinationUnreachable",
        {f"kafka_replicator_destination_reachable{{{REPLICATOR}}}": "1x9 0x30"},
        10,
        11,
        f"The destination cluster does not answer, link {ON_REPLICATOR}.",
    ),
    _case(
        "KafkaReplicatorLag",
        {
            f'kafka_replicator_lag_seconds{{topic="orders",partition="0",{REPLICATOR}}}': "60x9 90x30",
            f'kafka_replicator_lag_seconds{{topic="orders",partition="1",{REPLICATOR}}}': "0x40",
            f'kafka_replicator_topic_state{{topic="orders",state="active",{REPLICATOR}}}': "1x40",
            f'kafka_replicator_lag_seconds{{topic="paused",partition="0",{REPLICATOR}}}': "900x40",
            f'kafka_replicator_topic_state{{topic="paused",state="paused",{REPLICATOR}}}': "1x40",
        },
        19,
        20,
        f"The copy of the topic orders is 1m 30s behind, link {ON_REPLICATOR}.",
        topic="orders",
    ),
    _case(
        "KafkaReplicatorHeld",
        {f'kafka_replicator_held_seconds{{topic="orders",partition="0",{REPLICATOR}}}': "0+60x30"},
        15,
        16,
        f"An open transaction at the source has held the topic orders for 16m 0s, link {ON_REPLICATOR}.",
        topic="orders",
    ),
    _case(
        "KafkaReplicatorGap",
        {
            f'kafka_replicator_gaps_total{{topic="orders",partition="0",{REPLICATOR}}}': "0x9 1x30",
            f'kafka_replicator_gaps_total{{topic="payments",partition="0",{REPLICATOR}}}': "0x40",
        },
        9,
        10,
        f"Records of the topic orders will never be copied, link {ON_REPLICATOR}.",
        topic="orders",
    ),
    _case(
        "KafkaReplicatorGap",
        {f'kafka_replicator_gaps_total{{topic="orders",partition="0",{REPLICATOR}}}': "_x10 3x30"},
        9,
        10,
        f"Records of the topic orders will never be copied, link {ON_REPLICATOR}.",
        topic="orders",
    ),
    _case(
        "KafkaReplicatorDeadLetters",
        {
            f'kafka_replicator_dead_letters_total{{topic="orders",partition="0",{REPLICATOR}}}': "0x9 2x30",
            f'kafka_replicator_dead_letters_total{{topic="payments",partition="0",{REPLICATOR}}}': "0x40",
        },
        9,
        10,
        f"SQL in flight fails on records of the topic orders, link {ON_REPLICATOR}.",
        topic="orders",
    ),
    _case(
        "KafkaReplicatorStandbyMissing",
        {
            f"kafka_replicator_standbys_wanted{{{REPLICATOR}}}": "1x40",
            f'kafka_replicator_members{{state="standing by",{REPLICATOR}}}': "1x9 0x30",
            f'kafka_replicator_members{{state="active",{REPLICATOR}}}': "1x40",
            f"kafka_replicator_destination_reachable{{{REPLICATOR}}}": "1x40",
        },
        11,
        12,
        f"Fewer replicators stand by than the 1 of REPLICATOR_STANDBYS, link {ON_REPLICATOR}.",
    ),
    _case(
        "KafkaReplicatorStandbyMissing",
        {
            f"kafka_replicator_standbys_wanted{{{REPLICATOR}}}": "0x9 1x30",
            f"kafka_replicator_destination_reachable{{{REPLICATOR}}}": "1x40",
        },
        11,
        12,
        f"Fewer replicators stand by than the 1 of REPLICATOR_STANDBYS, link {ON_REPLICATOR}.",
    ),
    _case(
        "KafkaReplicatorCommandUnfinished",
        {f'kafka_replicator_topic_state{{topic="orders",state="resetting",{REPLICATOR}}}': "_x10 1x50"},
        39,
        40,
        f"The topic orders is resetting for half an hour, link {ON_REPLICATOR}.",
        topic="orders",
        state="resetting",
    ),
    _case(
        "KafkaReplicatorGroupsNotSynced",
        {f'kafka_replicator_groups{{state="refused",{REPLICATOR}}}': "0x9 2x30"},
        19,
        20,
        f"Groups whose offsets are refused: 2, link {ON_REPLICATOR}.",
        state="refused",
    ),
    _case(
        "KafkaReplicatorAuditBehind",
        {f"kafka_replicator_audit_lag_seconds{{{REPLICATOR}}}": "0+600x30"},
        22,
        23,
        f"The audit table is 3h 50m 0s behind, link {ON_REPLICATOR}.",
    ),
    _case(
        "KafkaTunnelNotScraped",
        {f"up{{{TUNNEL}}}": "1x9 stale"},
        11,
        12,
        "Prometheus has no target of the job kafka-tunnel.",
    ),
    _case(
        "KafkaTunnelEndSilent",
        {f"up{{{TUNNEL}}}": "1x9 0x30"},
        11,
        12,
        f"An end of the tunnel does not answer, link {ON_TUNNEL}.",
    ),
    _case(
        "KafkaTunnelServerUnreachable",
        {f"kafka_tunnel_server_reachable{{{TUNNEL}}}": "1x9 0x30"},
        10,
        11,
        f"The destination VM does not reach the source VM, link {ON_TUNNEL}.",
    ),
    _case(
        "KafkaTunnelSourceVmAway",
        {
            f'kafka_tunnel_source_vm_well{{server="10.1.0.2:15060",{TUNNEL}}}': "1x9 0x30",
            f'kafka_tunnel_source_vm_well{{server="10.1.0.3:15060",{TUNNEL}}}': "1x40",
            f"kafka_tunnel_server_reachable{{{TUNNEL}}}": "1x40",
        },
        11,
        12,
        f"The source VM at 10.1.0.2:15060 is not well, and another one carries, link {ON_TUNNEL}.",
        server="10.1.0.2:15060",
    ),
    _case(
        "KafkaTunnelBrokersUnknown",
        {f"kafka_tunnel_metadata_known{{{TUNNEL}}}": "1x9 0x30"},
        11,
        12,
        f"The source cluster does not list its brokers, link {ON_TUNNEL}.",
    ),
    _case(
        "KafkaTunnelBrokerNotOpen",
        {
            f'kafka_tunnel_brokers{{state="open",{TUNNEL}}}': "3x40",
            f'kafka_tunnel_brokers{{state="refused",{TUNNEL}}}': "0x9 2x30",
            f'kafka_tunnel_brokers{{state="closed",{TUNNEL}}}': "0x40",
        },
        10,
        11,
        f"Source brokers are refused: 2, link {ON_TUNNEL}.",
        state="refused",
    ),
    _case(
        "KafkaTunnelConnectionsRefused",
        {
            f'kafka_tunnel_connections_refused_total{{cause="identity",{TUNNEL}}}': "5x9 6x30",
            f'kafka_tunnel_connections_refused_total{{cause="target",{TUNNEL}}}': "0+1x40",
        },
        9,
        10,
        f"Connections are refused (identity), link {ON_TUNNEL}.",
        cause="identity",
    ),
    _case(
        "KafkaTunnelCertificateExpires",
        {f"kafka_tunnel_certificate_days_left{{{TUNNEL}}}": "30x9 29.4x90"},
        69,
        70,
        f"A certificate of the tunnel expires in 29 days, link {ON_TUNNEL}.",
    ),
    _case(
        "KafkaTunnelPeerCertificateExpires",
        {f"kafka_tunnel_peer_certificate_days_left{{{TUNNEL}}}": "30x9 29.4x90"},
        69,
        70,
        f"The certificate of the other end expires in 29 days, seen from {ON_TUNNEL}.",
    ),
    _case(
        "KafkaTunnelPreviousSecret",
        {f"kafka_tunnel_previous_secret{{{TUNNEL}}}": "0x9 1x1500"},
        1449,
        1450,
        f"The previous secret is still accepted, link {ON_TUNNEL}.",
    ),
    _case(
        "KafkaOrderSilent",
        {f"up{{{ORDER}}}": "1x30", f'kafka_order_cluster_reachable{{cluster="grape",{ORDER}}}': "1x9 stale"},
        13,
        14,
        f"Nothing is known from the order's process {ON_ORDER}.",
    ),
    _case(
        "KafkaOrderNoHome",
        {
            f'kafka_order_open{{topic="orders",partition="0",{ORDER}}}': "1x9 0x20",
            f'kafka_order_open{{topic="orders",partition="1",{ORDER}}}': "1x9 0x20",
            f'kafka_order_open{{topic="payments",partition="0",{ORDER}}}': "1x30",
        },
        10,
        11,
        f"The topic orders has partitions without a home: 2, order {ON_ORDER}.",
        topic="orders",
    ),
    _case(
        "KafkaOrderHomeSilent",
        {f'kafka_order_home_silent{{lane="0",{ORDER}}}': "0x9 1x20"},
        10,
        11,
        f"The home of the order is silent, as {ON_ORDER} hears it.",
    ),
    _case(
        "KafkaOrderClusterUnreachable",
        {
            f'kafka_order_cluster_reachable{{cluster="grape",{ORDER}}}': "1x9 0x20",
            f'kafka_order_cluster_reachable{{cluster="lemon",{ORDER}}}': "1x30",
        },
        11,
        12,
        f"The cluster grape does not answer, seen from {ON_ORDER}.",
        cluster="grape",
    ),
    _case(
        "KafkaOrderStopped",
        {
            f'kafka_order_stopped{{cluster="grape",topic="orders",partition="0",{ORDER}}}': "0x9 1x20",
            f'kafka_order_stopped{{cluster="grape",topic="orders",partition="1",{ORDER}}}': "0x9 1x20",
            f'kafka_order_stopped{{cluster="lemon",topic="orders",partition="0",{ORDER}}}': "0x30",
        },
        10,
        11,
        f"Stopped partitions of the topic orders in grape: 2, order {ON_ORDER}.",
        cluster="grape",
        topic="orders",
    ),
    _case(
        "KafkaOrderBehind",
        {
            f'kafka_order_records{{cluster="grape",topic="orders",partition="0",{ORDER}}}': "0+10x9 90x30",
            f'kafka_order_lacks_records{{cluster="grape",topic="orders",partition="0",{ORDER}}}': "7x9 10+10x30",
            f'kafka_order_records{{cluster="lemon",topic="orders",partition="0",{ORDER}}}': "0+10x40",
            f'kafka_order_lacks_records{{cluster="lemon",topic="orders",partition="0",{ORDER}}}': "7x40",
        },
        18,
        19,
        f"T-global of the topic orders in grape lacks records that the home had five minutes ago, order {ON_ORDER}.",
        cluster="grape",
        topic="orders",
    ),
    _case(
        "KafkaOrderAlone",
        {f'kafka_order_alone{{cluster="orange",topic="orders",partition="0",{ORDER}}}': "0x9 1x20"},
        9,
        10,
        f"The home is alone with partitions of the topic orders in orange: 1, order {ON_ORDER}.",
        cluster="orange",
        topic="orders",
    ),
)
