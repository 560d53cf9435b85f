"""The alerts: their conditions, how long each must hold, and the task of whoever is called."""

import enum
import functools
from dataclasses import dataclass

import yaml

from appliance.program import IN_CONTAINER, topic_option

REPLICATOR_JOB = "kafka-replicator"
TUNNEL_JOB = "kafka-tunnel"
ORDER_JOB = "kafka-order"
"""The jobs of ``monitoring/prometheus.yml``."""

_LINK = "{{ $labels.link }} ({{ $labels.instance }})"
TOPIC = '{{ reReplaceAll "[^a-zA-Z0-9._-]" "_" $labels.topic }}'
"""Within a command: a name that no topic can have, as a hostile broker tells it, ends no command."""
_STATUS = f"On the destination VM, `{IN_CONTAINER} status`"
_TOPIC_STATUS = f"On the destination VM, `{IN_CONTAINER} status --topic-name={TOPIC}`"
_DOCTOR = "Run `docker-compose run --rm doctor` on the destination VM"


class Severity(enum.StrEnum):
    """``critical``: records are not copied, act now. ``warning``: act within the day."""

    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert; ``holds`` is the time for which its condition must be true, as Prometheus writes it."""

    severity: Severity
    name: str
    condition: str
    holds: str
    summary: str
    description: str

    @property
    def runbook(self) -> str:
        """The place in docs/ that has its meaning and its remedy."""
        return f"docs/night/alerts.md#{self.name.lower()}"


_critical = functools.partial(Alert, Severity.CRITICAL)
_warning = functools.partial(Alert, Severity.WARNING)


def _not_scraped(name: str, job: str, variable: str) -> Alert:
    """The alert that no target is scraped, so that a renamed job does not silence the others."""
    return _critical(
        name,
        f'absent(up{{job="{job}"}})',
        "2m",
        f"Prometheus has no target of the job {job}.",
        f"Add a job of this name with the address of {variable} to the scrape configuration, as in "
        "docs/run/monitoring.md.",
    )


def _grown(counter: str) -> str:
    """The condition that a topic's counter has grown within the hour, or was not 0 when it was first scraped.

    What was scraped in the hour before that is known, whether or not it was an hour ago to the second.
    """
    first = f"({counter} > 0 unless max_over_time({counter}[1h] offset 1h))"
    return f"sum without (partition) (increase({counter}[1h])) > 0 or sum without (partition) {first} > 0"


REPLICATOR_ALERTS = (
    _not_scraped("KafkaReplicatorNotScraped", REPLICATOR_JOB, "CONSOLE_LISTEN"),
    _critical(
        "KafkaReplicatorSilent",
        f'up{{job="{REPLICATOR_JOB}"}} unless on (job, instance) '
        "(count_over_time(kafka_replicator_source_reachable[2m]) "
        "> on (job, instance) 0.5 * count_over_time(up[2m]))",
        "2m",
        f"Nothing is known of the link {_LINK}.",
        "The replicator does not answer, or its newest snapshot is older than 30 s. On the destination VM, look at "
        "`docker-compose ps` and `docker-compose logs --tail 100 replicator`, then run `docker-compose up -d`. If it "
        "runs, compare its address with the scrape configuration.",
    ),
    _critical(
        "KafkaReplicatorPartitionStopped",
        "sum without (partition) (kafka_replicator_stopped) > 0",
        "1m",
        f"The topic {{{{ $labels.topic }}}} has stopped partitions: {{{{ $value }}}}, link {_LINK}.",
        f"{_TOPIC_STATUS} shows the reason of each, and the commands that end it. With `--dry-run` these only show "
        f"what they change. `{IN_CONTAINER} resume {topic_option(TOPIC)}` retries all whose cause is mended.",
    ),
    _critical(
        "KafkaReplicatorTopicStopped",
        "kafka_replicator_topic_stopped > 0",
        "1m",
        f"No partition of the topic {{{{ $labels.topic }}}} can be copied, link {_LINK}.",
        f"{_TOPIC_STATUS} shows the reason, and what to change.",
    ),
    _critical(
        "KafkaReplicatorNotCopying",
        'max_over_time(kafka_replicator_link_state{state=~"never run|failing|nothing matches"}[1m]) == 1 or '
        'max_over_time(kafka_replicator_link_state{state="stopped"}[1m]) == 1 unless on (job, instance) '
        "(max_over_time(kafka_replicator_stopped[1m]) == 1 or max_over_time(kafka_replicator_topic_stopped[1m]) == 1)",
        "3m",
        f"The link {_LINK} does not copy: it is {{{{ $labels.state }}}}.",
        f"{_STATUS} shows what is tried in vain, since when and why, and what to change.",
    ),
    _critical(
        "KafkaReplicatorRestarts",
        "count by (job, instance, link) (count by (job, instance, link, run) "
        "(count_over_time(kafka_replicator_lane_owner_since_seconds[15m]))) > 4",
        "0m",
        f"The replicator starts again and again: {{{{ $value }}}} runs within 15 minutes, link {_LINK}.",
        "Its log says why each run has ended: `docker-compose logs --tail 200 replicator`. If it is killed without a "
        "word, look at the VM's memory.",
    ),
    _critical(
        "KafkaReplicatorStuck",
        "sum without (partition) (max_over_time(kafka_replicator_stuck[90s])) > 0",
        "2m",
        f"Nothing is copied of partitions of the topic {{{{ $labels.topic }}}}: {{{{ $value }}}}, link {_LINK}.",
        f"{_STATUS} shows since when, and the problem that the replicator has.",
    ),
    _critical(
        "KafkaReplicatorPartitionUnknown",
        "sum without (partition) (kafka_replicator_unknown) > 0 and on (job, instance) "
        "(kafka_replicator_source_reachable == 1 and kafka_replicator_destination_reachable == 1)",
        "5m",
        f"Of the topic {{{{ $labels.topic }}}}, partitions are unknown: {{{{ $value }}}}, link {_LINK}.",
        f"{_STATUS} shows the reason of each: a leader that does not answer, a missing right, or a copy that was "
        "deleted or made anew.",
    ),
    _critical(
        "KafkaReplicatorSourceUnreachable",
        "kafka_replicator_source_reachable == 0",
        "1m",
        f"The source cluster does not answer, link {_LINK}.",
        f"{_DOCTOR}: it tests the way step by step, and names the fault with its remedy. If the cluster is lost, "
        "docs/night/failover.md says how to promote the copies.",
    ),
    _critical(
        "KafkaReplicatorDestinationUnreachable",
        "kafka_replicator_destination_reachable == 0",
        "1m",
        f"The destination cluster does not answer, link {_LINK}.",
        f"{_DOCTOR}: it names the fault with its remedy. Copying continues by itself when the cluster answers.",
    ),
    _warning(
        "KafkaReplicatorLag",
        "max without (partition) (kafka_replicator_lag_seconds) > 60 "
        'and on (job, instance, topic) kafka_replicator_topic_state{state="active"} == 1',
        "10m",
        f"The copy of the topic {{{{ $labels.topic }}}} is {{{{ $value | humanizeDuration }}}} behind, link {_LINK}.",
        "Look at its rate on the dashboard. If it is 0, read the log: `docker-compose logs --tail 100 replicator`. If "
        "it is at the bound, raise MAX_BYTES_PER_SECOND. Look at the clusters' quotas. Otherwise see "
        "docs/why/performance.md.",
    ),
    _warning(
        "KafkaReplicatorHeld",
        "max without (partition) (kafka_replicator_held_seconds) > 900",
        "0m",
        "An open transaction at the source has held the topic {{ $labels.topic }} for "
        f"{{{{ $value | humanizeDuration }}}}, link {_LINK}.",
        f"{_STATUS} names the transaction and its producer. End that transaction, or wait for its timeout.",
    ),
    _warning(
        "KafkaReplicatorGap",
        _grown("kafka_replicator_gaps_total"),
        "0m",
        f"Records of the topic {{{{ $labels.topic }}}} will never be copied, link {_LINK}.",
        f"{_STATUS} lists the offsets and the cause. If retention is faster than the copy, give the source more "
        "retention, or the replicator more cores.",
    ),
    _warning(
        "KafkaReplicatorDeadLetters",
        _grown("kafka_replicator_dead_letters_total"),
        "0m",
        f"SQL in flight fails on records of the topic {{{{ $labels.topic }}}}, link {_LINK}.",
        "They are in the copy's dead-letter topic, each with the reason in its headers: docs/run/transform.md.",
    ),
    _warning(
        "KafkaReplicatorStandbyMissing",
        "kafka_replicator_standbys_wanted > 0 and on (job, instance) kafka_replicator_destination_reachable == 1 "
        "unless on (job, instance) "
        '(kafka_replicator_members{state="standing by"} >= on (job, instance) kafka_replicator_standbys_wanted)',
        "2m",
        f"Fewer replicators stand by than the {{{{ $value }}}} of REPLICATOR_STANDBYS, link {_LINK}.",
        f"{_STATUS} shows those that are there, or why they are unknown. On the VM that is missing, run "
        "`docker-compose up -d`. Copying goes on, but nobody takes over.",
    ),
    _warning(
        "KafkaReplicatorCommandUnfinished",
        'kafka_replicator_topic_state{state=~"failing over|failing back|resetting"} == 1',
        "30m",
        f"The topic {{{{ $labels.topic }}}} is {{{{ $labels.state }}}} for half an hour, link {_LINK}.",
        "If the command does not run any more, run it again: it finishes what it has begun, and nothing is copied "
        "before.",
    ),
    _warning(
        "KafkaReplicatorGroupsNotSynced",
        'kafka_replicator_groups{state=~"refused|unknown"} > 0',
        "10m",
        f"Groups whose offsets are {{{{ $labels.state }}}}: {{{{ $value }}}}, link {_LINK}.",
        f"{_STATUS} names them, with the reasons.",
    ),
    _warning(
        "KafkaReplicatorAuditBehind",
        "kafka_replicator_audit_lag_seconds > 7200",
        "10m",
        f"The audit table is {{{{ $value | humanizeDuration }}}} behind, link {_LINK}.",
        "The replicator's log says why: `docker-compose logs replicator | grep audit`. Copying goes on. No row is "
        "lost; where the positions topic is compacted first, rows become coarser.",
    ),
)

TUNNEL_ALERTS = (
    _not_scraped("KafkaTunnelNotScraped", TUNNEL_JOB, "TUNNEL_STATUS_LISTEN"),
    _critical(
        "KafkaTunnelEndSilent",
        f'up{{job="{TUNNEL_JOB}"}} == 0',
        "2m",
        f"An end of the tunnel does not answer, link {_LINK}.",
        "On its VM, look at `docker-compose ps` and `docker-compose logs --tail 100`, then run `docker-compose up -d`. "
        "If it runs, compare its address with the scrape configuration.",
    ),
    _critical(
        "KafkaTunnelServerUnreachable",
        "kafka_tunnel_server_reachable == 0",
        "1m",
        f"The destination VM does not reach the source VM, link {_LINK}.",
        f"{_DOCTOR}, then on the source VM. It tells a closed port from a filtered one, another secret and another "
        "clock.",
    ),
    _warning(
        "KafkaTunnelSourceVmAway",
        "kafka_tunnel_source_vm_well == 0 and ignoring (server) kafka_tunnel_server_reachable == 1",
        "2m",
        f"The source VM at {{{{ $labels.server }}}} is not well, and another one carries, link {_LINK}.",
        "Nothing waits, but one VM fewer could stand in. On that VM, look at `docker-compose ps`, and run "
        "`docker-compose run --rm doctor`. /status of the destination VM's end has its condition and the reason.",
    ),
    _critical(
        "KafkaTunnelBrokersUnknown",
        "kafka_tunnel_metadata_known == 0",
        "2m",
        f"The source cluster does not list its brokers, link {_LINK}.",
        f"{_DOCTOR}. Known brokers are still reached; new ones are not. The cause is in /health of the destination "
        "VM's end: the way, the API key, or the brokers' certificate.",
    ),
    _warning(
        "KafkaTunnelBrokerNotOpen",
        'kafka_tunnel_brokers{state!="open"} > 0',
        "1m",
        f"Source brokers are {{{{ $labels.state }}}}: {{{{ $value }}}}, link {_LINK}.",
        "/health of the destination VM's end names them. For refused ones, extend SOURCE_BROKER_SERVERS or "
        "SOURCE_BROKER_PATTERN on both VMs; for closed ones, look at TUNNEL_ENDPOINT_NETWORK.",
    ),
    _warning(
        "KafkaTunnelConnectionsRefused",
        'increase(kafka_tunnel_connections_refused_total{cause=~"identity|full|crowd"}[5m]) > 0',
        "0m",
        f"Connections are refused ({{{{ $labels.cause }}}}), link {_LINK}.",
        "identity: strangers are at the port, or the two VMs have different secrets. crowd: too many unauthenticated "
        "connections; let the firewall admit only the other VM. full: raise TUNNEL_CONNECTIONS_MAX.",
    ),
    _warning(
        "KafkaTunnelCertificateExpires",
        "kafka_tunnel_certificate_days_left < 30",
        "1h",
        f'A certificate of the tunnel expires in {{{{ $value | printf "%.0f" }}}} days, link {_LINK}.',
        "Replace the file of TUNNEL_CERTIFICATE_FILE on that VM. It is taken without a restart.",
    ),
    _warning(
        "KafkaTunnelPeerCertificateExpires",
        "kafka_tunnel_peer_certificate_days_left < 30",
        "1h",
        f'The certificate of the other end expires in {{{{ $value | printf "%.0f" }}}} days, seen from {_LINK}.',
        "Replace the file of TUNNEL_CERTIFICATE_FILE on the other VM. It is taken without a restart. This alert ends "
        "with the next connection of the tunnel.",
    ),
    _warning(
        "KafkaTunnelPreviousSecret",
        "kafka_tunnel_previous_secret == 1",
        "1d",
        f"The previous secret is still accepted, link {_LINK}.",
        "When the source VM has the new SHARED_SECRET, remove SHARED_SECRET_PREVIOUS from setenv.sh of the destination "
        "VM, and run the prepare script and `docker-compose up -d`.",
    ),
)

_ORDER_STATUS = f"`{IN_CONTAINER} order status` on any VM of the order"
_OF_CLUSTER = "the topic {{ $labels.topic }} in {{ $labels.cluster }}"


def _parts(metric: str) -> str:
    """The number of partitions for which this holds, of each topic in each cluster."""
    return f"sum without (partition) ({metric}) > 0"


ORDER_ALERTS = (
    _critical(
        "KafkaOrderSilent",
        f'up{{job="{ORDER_JOB}"}} unless on (job, instance) count_over_time(kafka_order_cluster_reachable[2m])',
        "2m",
        f"Nothing is known from the order's process {_LINK}.",
        "The process does not answer, or its newest look at the clusters is older than 30 s. On its VM, look at "
        "`docker-compose ps` and `docker-compose logs --tail 100 replicator`, then run `docker-compose up -d`.",
    ),
    _critical(
        "KafkaOrderNoHome",
        "sum without (partition) (1 - kafka_order_open) > 0",
        "1m",
        f"The topic {{{{ $labels.topic }}}} has partitions without a home: {{{{ $value }}}}, order {_LINK}.",
        f"{_ORDER_STATUS} names the epoch that is not open, and who has promised it. Nothing is ordered meanwhile. If "
        "clusters are lost for good, docs/run/total-order.md says how to go on without them.",
    ),
    _critical(
        "KafkaOrderHomeSilent",
        "sum without (lane) (kafka_order_home_silent) > 0",
        "30s",
        f"The home of the order is silent, as {_LINK} hears it.",
        f"With three or more clusters another home follows within 15 s if enough of them are well. {_ORDER_STATUS} "
        "says who is home, and which clusters answer.",
    ),
    _critical(
        "KafkaOrderClusterUnreachable",
        "kafka_order_cluster_reachable == 0",
        "2m",
        f"The cluster {{{{ $labels.cluster }}}} does not answer, seen from {_LINK}.",
        f"Run `docker-compose run --rm doctor` on that VM. {_ORDER_STATUS} says whether the others go on.",
    ),
    _critical(
        "KafkaOrderStopped",
        _parts("kafka_order_stopped"),
        "1m",
        f"Stopped partitions of {_OF_CLUSTER}: {{{{ $value }}}}, order {_LINK}.",
        f"{_ORDER_STATUS} shows the reason of each, and the command that ends it.",
    ),
    _warning(
        "KafkaOrderBehind",
        "count without (partition) "
        "(kafka_order_records < kafka_order_records offset 5m + kafka_order_lacks_records offset 5m) > 0",
        "5m",
        f"T-global of {_OF_CLUSTER} lacks records that the home had five minutes ago, order {_LINK}.",
        f"{_ORDER_STATUS} shows what it lacks. Look at the log of the process beside that cluster: `docker-compose "
        "logs --tail 100 replicator`.",
    ),
    _warning(
        "KafkaOrderAlone",
        _parts("kafka_order_alone"),
        "0m",
        f"The home is alone with partitions of {_OF_CLUSTER}: {{{{ $value }}}}, order {_LINK}.",
        "What it shows now is in no other cluster. If it is lost before another one follows, these records are ordered "
        f"anew. {_ORDER_STATUS} says which cluster is missing: bring it back.",
    ),
)

_HEAD = "# Written by `python -m deploy.monitoring` from deploy/monitoring/alerts.py; see docs/run/monitoring.md.\n"

ALERTS = (*REPLICATOR_ALERTS, *TUNNEL_ALERTS, *ORDER_ALERTS)


def rules_file() -> str:
    """The rules as Prometheus loads them."""
    groups = {REPLICATOR_JOB: REPLICATOR_ALERTS, TUNNEL_JOB: TUNNEL_ALERTS, ORDER_JOB: ORDER_ALERTS}
    rules = [{"name": name, "rules": [_rule(alert) for alert in alerts]} for name, alerts in groups.items()]
    return _HEAD + yaml.safe_dump({"groups": rules}, sort_keys=False, width=1_000)


def _rule(alert: Alert) -> dict[str, object]:
    return {
        "alert": alert.name,
        "expr": alert.condition,
        "for": alert.holds,
        "labels": {"severity": alert.severity.value},
        "annotations": {"summary": alert.summary, "description": alert.description, "runbook": alert.runbook},
    }
