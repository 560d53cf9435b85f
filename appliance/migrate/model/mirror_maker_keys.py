"""The keys of MirrorMaker 2's connectors and of its Connect workers, each with its rule.

They are those of Kafka 2.4 to 4.3. ``MirrorMakerConfig`` of Kafka says which of them count where.
"""

from collections.abc import Mapping

from appliance.migrate.model.properties import alternation
from appliance.migrate.model.verdict import Rule, Translation, always, by_value, carried, left, needless, yes_or_no

_TOPICS = "REPLICA_TOPICS_SOURCE_REGEX"
_GROUPS = "REPLICA_GROUPS_REGEX"
_NAMING = "REPLICA_TOPICS_NAMING"
_POLICIES = "org.apache.kafka.connect.mirror."
_ALWAYS_SEARCHED = "new topics and partitions are found every DISCOVERY_SECONDS"
_OWN_TOPICS = "the link's own topics get REPLICATION_FACTOR, as its copies do"
_NO_WORKERS = "a setting of Connect's workers, which the link has not"
_EXACTLY_ONCE = "the link copies exactly once, without Connect's support"
_NO_TRANSFORMS = "records are copied byte for byte, and nothing is changed in them"


_FORMATS = by_value(
    {"true": carried("MM2_FORMATS", lambda _: "yes")}, left("MM2_FORMATS=yes writes both heartbeats and checkpoints")
)


def _policy(value: str) -> Translation:
    naming = {f"{_POLICIES}DefaultReplicationPolicy": "prefix", f"{_POLICIES}IdentityReplicationPolicy": "identical"}
    naming["io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"] = "identical"
    if value.strip() in naming:
        return carried(_NAMING)(naming[value.strip()])
    return left("a policy of your own; choose REPLICA_TOPICS_NAMING, so that copies keep their names", _NAMING)(value)


def _own(what: str, standard: str, *withheld: str) -> Rule:
    """A class that may be MirrorMaker's own one; no other is run."""
    return by_value(
        {(_POLICIES + standard).lower(): needless("the same choice")}, left(f"{what} of your own is not run", *withheld)
    )


def _alias(variable: str) -> Rule:
    no_prefix = left("it is empty; if the separator is too, copies have REPLICA_TOPICS_NAMING=identical", _NAMING)
    return by_value({"": no_prefix}, carried(variable, withholds=_NAMING))


NAMES = ("source.cluster.alias", "target.cluster.alias", "replication.policy.separator")
"""The keys of which names of copies consist, unless they are identical."""

CONNECTOR: Mapping[str, Rule] = {
    "topics": carried(_TOPICS, alternation),
    "topics.exclude": carried("REPLICA_TOPICS_EXCLUDE_REGEX", alternation, withholds=_TOPICS),
    "groups": carried(_GROUPS, alternation),
    "groups.exclude": carried("REPLICA_GROUPS_EXCLUDE_REGEX", alternation, withholds=_GROUPS),
    "config.properties.exclude": carried("CONFIGS_EXCLUDE_REGEX", alternation),
    "replication.policy.class": _policy,
    "source.cluster.alias": _alias("SOURCE_CLUSTER_ID"),
    "target.cluster.alias": _alias("DESTINATION_CLUSTER_ID"),
    "replication.policy.separator": carried("REPLICA_TOPICS_SEPARATOR", withholds=_NAMING),
    "replication.policy.internal.topic.separator.enabled": by_value(
        {"true": needless("internal topics have the separator")},
        left("MirrorMaker's own topics are named with REPLICA_TOPICS_SEPARATOR, as by clients since Kafka 3.1"),
    ),
    "replication.factor": carried("REPLICATION_FACTOR"),
    "offset-syncs.topic.replication.factor": left(_OWN_TOPICS),
    "heartbeats.topic.replication.factor": left(_OWN_TOPICS),
    "checkpoints.topic.replication.factor": left(_OWN_TOPICS),
    "refresh.topics.enabled": always(_ALWAYS_SEARCHED, "true"),
    "refresh.topics.interval.seconds": carried("DISCOVERY_SECONDS"),
    "refresh.groups.enabled": always("new groups are found every GROUPS_SYNC_SECONDS", "true"),
    "refresh.groups.interval.seconds": left("new groups are found every GROUPS_SYNC_SECONDS"),
    "sync.topic.configs.enabled": yes_or_no("CONFIGS_SYNC"),
    "sync.topic.configs.interval.seconds": left("settings follow within some DISCOVERY_SECONDS"),
    "sync.topic.acls.enabled": yes_or_no("ACLS_SYNC"),
    "sync.topic.acls.interval.seconds": left("ACLs follow within some DISCOVERY_SECONDS"),
    "sync.group.offsets.enabled": by_value(
        {"true": needless("offsets of the groups of REPLICA_GROUPS_REGEX are committed")},
        left("offsets of the groups of REPLICA_GROUPS_REGEX are committed, while nobody consumes at the destination"),
    ),
    "sync.group.offsets.interval.seconds": carried("GROUPS_SYNC_SECONDS"),
    "emit.checkpoints.enabled": _FORMATS,
    "emit.checkpoints.interval.seconds": left(
        "a checkpoint follows each look at the groups, every GROUPS_SYNC_SECONDS"
    ),
    "emit.heartbeats.enabled": _FORMATS,
    "emit.heartbeats.interval.seconds": by_value(
        {"1": needless("each second")}, left("a heartbeat is written each second")
    ),
    "heartbeats.replication.enabled": by_value(
        {"true": needless("heartbeats of further clusters are copied with MM2_FORMATS=yes")},
        left("with MM2_FORMATS=yes heartbeats of further clusters are copied; exclude them with topics.exclude"),
    ),
    "emit.offset-syncs.enabled": left("every offset translates exactly, from the link's own maps"),
    "offset-syncs.topic.location": left("the link writes nothing at the source; its maps are at the destination"),
    "offset.lag.max": left("every offset translates exactly, from the link's own maps"),
    "tasks.max": carried("TASKS", note="also the number of lanes of a new link; for more, set LANES"),
    "topic.filter.class": _own("a topic filter", "DefaultTopicFilter", _TOPICS),
    "group.filter.class": _own("a group filter", "DefaultGroupFilter", _GROUPS),
    "config.property.filter.class": _own("a filter of settings", "DefaultConfigPropertyFilter"),
    "forwarding.admin.class": _own("an admin client", "ForwardingAdmin"),
    "use.defaults.from": by_value(
        {"target": needless("what a topic does not set, it has from its own cluster")},
        left("what a topic does not set, its copy has from the destination's brokers"),
    ),
    "use.incremental.alter.configs": left("settings are changed one by one where the brokers can"),
    "add.source.alias.to.metrics": left("metrics have the source cluster as a label"),
    "consumer.poll.timeout.ms": left("the link reads as soon as there is something"),
    "metric.names.formats": left("for metrics see docs/run/monitoring.md"),
    "admin.timeout.ms": left("the link's deadlines are its own"),
    "exactly.once.support": left(_EXACTLY_ONCE),
    "transaction.boundary": left(_EXACTLY_ONCE),
    "transaction.boundary.interval.ms": left("a transaction gathers for COMMIT_INTERVAL_MS"),
    "transforms": left(_NO_TRANSFORMS, _TOPICS),
    "predicates": left(_NO_TRANSFORMS),
    "errors.tolerance": left("nothing is skipped: a partition that cannot be copied stops, and says why"),
}
"""The keys of the connectors: of one direction with ``A->B.`` before them, else of all."""

NEVER_COPIED = r"__.*,\..*,.*[-.]internal,heartbeats"
"""Topics that MirrorMaker leaves out whatever it is set to, and its own heartbeats, which the link writes.

Versions differ in topics that end in "internal" and are not MirrorMaker's: older ones leave them out (KIP-1074).
"""

INTERNAL_NOTE = "without topics that end in .internal or -internal, as older versions have it; status lists them"

ACLS = "sync.topic.acls.enabled"

GROUPS = ("groups", "groups.exclude")
"""Keys that count only where offsets of groups are synced, or told in checkpoints."""

OLD_NAMES = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
}
"""Names of Kafka before 2.7, and their new ones. Kafka 4.0 no longer reads the old ones."""

DEFAULTS = {
    "topics": ".*",
    "topics.exclude": r"mm2.*\.internal, .*\.replica, __.*",
    "groups": ".*",
    "replication.policy.class": f"{_POLICIES}DefaultReplicationPolicy",
    "replication.factor": "2",
    "sync.topic.acls.enabled": "true",
    "sync.group.offsets.enabled": "false",
    "emit.checkpoints.enabled": "true",
    "emit.heartbeats.enabled": "true",
}
"""MirrorMaker's defaults (Kafka 4.3) that differ from ours."""

WORKER = {
    "transforms.": _NO_TRANSFORMS,
    "predicates.": _NO_TRANSFORMS,
    "topic.creation.": "a copy has the partitions and the settings of its source topic",
    "errors.": "nothing is skipped: a partition that cannot be copied stops, and says why",
    "key.converter": _NO_TRANSFORMS,
    "value.converter": _NO_TRANSFORMS,
    "header.converter": _NO_TRANSFORMS,
    "offset.storage.": "positions are in the destination cluster, in replicator-<SOURCE_CLUSTER_ID>.positions",
    "offset.flush.": "positions are committed with the copies",
    "exactly.once.source.support": _EXACTLY_ONCE,
    "config.providers": "the settings are in setenv.sh, and secrets in files with NAME_FILE",
    "replication.policy.": "a setting of a replication policy of your own",
    "metric": "for metrics see docs/run/monitoring.md",
    "config.storage.": _NO_WORKERS,
    "status.storage.": _NO_WORKERS,
    "dedicated.mode.enable.internal.rest": "the control center has Connect's REST interface; see docs/run/console.md",
    "listeners": "the control center has Connect's REST interface; see docs/run/console.md",
    "rest.": "the control center has Connect's REST interface; see docs/run/console.md",
    "task": _NO_WORKERS,
    "worker": _NO_WORKERS,
    "group.id": _NO_WORKERS,
    "plugin.": _NO_WORKERS,
    "name": "the link is called replicator-<SOURCE_CLUSTER_ID>",
    "connector.class": _NO_WORKERS,
}
"""The beginnings of further keys, with the reason why they are left."""
