"""The settings of a connector of Confluent Replicator, as a link.

Replicator knows no names of clusters. A copy's name gives the source's where the cluster's name begins it
(``orange.${topic}``); otherwise both are chosen by the user.
"""

import re
from collections.abc import Mapping, Sequence

from appliance.errors import SettingsError
from appliance.migrate.model.clients import CONSUMER, PRODUCER, TUNING, client_rules, left_of_a_client
from appliance.migrate.model.link import ImportedLink, LinkBuilder
from appliance.migrate.model.properties import expression, names
from appliance.migrate.model.verdict import (
    Ledger,
    Outcome,
    Rule,
    Translation,
    Verdict,
    always,
    by_value,
    carried,
    left,
    needless,
    yes_or_no,
)
from appliance.settings.role import Side
from appliance.settings.values import TopicNaming

CONNECTOR_CLASS = "io.confluent.connect.replicator.ReplicatorSourceConnector"

_TOPICS = "REPLICA_TOPICS_SOURCE_REGEX"
_TOPIC = "${topic}"
_OVERRIDE = "producer.override."
_INTERNAL = "without the topics of REPLICA_TOPICS_INTERNAL_REGEX, in which programs keep their state"
_BYTES = "records are copied byte for byte, and nothing is changed in them"
_AS_ITS_SOURCE = "a copy has as many partitions as its source topic, also later"
_GROUPS = "no interceptor and no timestamps: offsets of the groups of REPLICA_GROUPS_REGEX are translated exactly"
_SCHEMAS = "schemas are not copied: give both sides one schema registry, or copy its topic _schemas"
_PROVENANCE = (
    "not needed: no header is added, and no record travels in circles, since copies are known by their names, and with "
    "REPLICA_TOPICS_NAMING=identical by the producer id of their batches"
)
_SAME_BYTES = by_value(
    {
        "io.confluent.connect.replicator.util.bytearrayconverter": needless(_BYTES),
        "org.apache.kafka.connect.converters.bytearrayconverter": needless(_BYTES),
    },
    left(_BYTES, _TOPICS),
)


def _milliseconds(value: str) -> str:
    """Milliseconds as seconds."""
    if not value.strip().isdecimal():
        raise ValueError("expected whole milliseconds")
    return f"{int(value) / 1000:g}"


KEYS: Mapping[str, Rule] = {
    "topic.poll.interval.ms": carried("DISCOVERY_SECONDS", _milliseconds),
    "topic.config.sync": yes_or_no("CONFIGS_SYNC"),
    "topic.config.sync.interval.ms": left("settings follow within some DISCOVERY_SECONDS"),
    "topic.auto.create": by_value({"true": needless("copies are created")}, left("copies are created where they lack")),
    "topic.create.backoff.ms": left("the link's deadlines are its own"),
    "topic.preserve.partitions": always(_AS_ITS_SOURCE, "true"),
    "topic.timestamp.type": always("records keep their timestamps", "createtime"),
    "dest.topic.replication.factor": by_value(
        {"0": left("REPLICATION_FACTOR=-1 is the destination brokers' default; as at the source is not offered")},
        carried("REPLICATION_FACTOR"),
    ),
    "tasks.max": carried("TASKS", note="also the number of lanes of a new link; for more, set LANES"),
    "provenance.header.enable": needless(_PROVENANCE),
    "offset.topic.commit": left("positions are in the destination cluster, and their lag in bin/appliance status"),
    "offset.start": left("a new link begins as REPLICA_TOPICS_START says, and then at its own positions"),
    "key.converter": _SAME_BYTES,
    "value.converter": _SAME_BYTES,
    "src.key.converter": _SAME_BYTES,
    "src.value.converter": _SAME_BYTES,
    "connector.class": by_value({CONNECTOR_CLASS.lower(): needless("one link")}, left("not Confluent Replicator")),
    "transforms": left(_BYTES, _TOPICS),
    "errors.tolerance": left("nothing is skipped: a partition that cannot be copied stops, and says why"),
}
"""The keys with a rule of their own, beside the topics, their names and the clusters."""

BEGINNINGS = {
    "provenance.header.": _PROVENANCE,
    "src.zookeeper.": "ZooKeeper is not asked",
    "dest.zookeeper.": "ZooKeeper is not asked",
    "connector.client.config.override.policy": "a setting of Connect's workers, which the link has not",
    "offset.translator.": _GROUPS,
    "offset.timestamps.": _GROUPS,
    "fetch.offset.": _GROUPS,
    "src.kafka.timestamps.": _GROUPS,
    "dest.kafka.timestamps.": _GROUPS,
    "schema.": _SCHEMAS,
    "src.header.converter": _BYTES,
    "src.key.converter.": _BYTES,
    "src.value.converter.": _BYTES,
    "key.converter.": _BYTES,
    "value.converter.": _BYTES,
    "header.converter": _BYTES,
    "transforms.": _BYTES,
    "predicates": _BYTES,
    "confluent.license": "no license is needed",
    "confluent.topic": "no license is needed, and so no topic for it",
    "errors.": "nothing is skipped: a partition that cannot be copied stops, and says why",
    "topic.creation.": "a copy has the partitions and the settings of its source topic",
    "name": "the link is called replicator-<SOURCE_CLUSTER_ID>",
    "exactly.once.support": "the link copies exactly once, without Connect's support",
    "transaction.boundary": "a transaction gathers for COMMIT_INTERVAL_MS",
    "config.action.reload": "the settings are in setenv.sh",
}
"""The beginnings of further keys, with the reason why they are left."""


def replicator_link(
    name: str, values: Mapping[str, str], source: str, destination: str
) -> tuple[ImportedLink, tuple[Outcome, ...]]:
    """The link, and the outcome for each key of the file ``name``; ``source`` "" chooses the cluster's name."""
    if "src.kafka.bootstrap.servers" not in values:
        raise SettingsError([f"{name}: src.kafka.bootstrap.servers: missing: is it a connector of Replicator?"])
    ledger = Ledger()
    renamed = values.get("topic.rename.format", "").strip() or _TOPIC
    before, _, after = renamed.partition(_TOPIC)
    link = LinkBuilder(source or before.rstrip("._-") or "source", destination)
    _clusters(values, link, ledger)
    for key in (key for key in values if key in KEYS):
        ledger.note(key, link.apply(KEYS[key], values[key]))
    _topics(values, link, ledger)
    listed = _listed(values) if _TOPICS in link.built().variables else ()
    naming = link.apply(lambda _: _naming(link.source, renamed, before, after, listed), renamed)
    ledger.note("topic.rename.format", naming)
    return link.built(), ledger.outcomes(values, _left_over)


def _clusters(values: Mapping[str, str], link: LinkBuilder, ledger: Ledger) -> None:
    """Apply the rules of both clusters.

    Connect's own producer writes at the destination, and may be the only one that knows it.
    """
    ends = (
        (Side.SOURCE, ["src.kafka."], "src.consumer.", CONSUMER),
        (Side.DESTINATION, ["dest.kafka.", _OVERRIDE], _OVERRIDE, PRODUCER),
    )
    for side, prefixes, own, of_role in ends:

        def type_of(store: str, prefixes: Sequence[str] = prefixes) -> str:
            types = (values.get(f"{prefix}ssl.{store}.type") for prefix in prefixes)
            return next(filter(None, types), "")

        link.default(f"{side.value.upper()}_SECURITY_PROTOCOL", "PLAINTEXT")
        rules = client_rules(side, type_of)
        named = [([prefix + key for prefix in prefixes], rule) for key, rule in rules.items()]
        for keys, rule in [*named, *(([own + key], rule) for key, rule in of_role.items())]:
            for key in [key for key in keys if key in values][:1]:
                ledger.note(key, link.apply(rule, values[key]))


def _topics(values: Mapping[str, str], link: LinkBuilder, ledger: Ledger) -> None:
    """Topics are those of the list and of the expression together, without those of the other list."""
    chosen: list[str] = []
    for key, convert in (("topic.whitelist", names), ("topic.regex", expression)):
        if values.get(key, "").strip():
            translation = link.apply(carried(_TOPICS, convert, withholds=_TOPICS, note=_INTERNAL), values[key])
            ledger.note(key, translation)
            chosen += translation.variables.values()
    if chosen:
        link.apply(carried(_TOPICS), "|".join(chosen))
    if (excluded := values.get("topic.blacklist", "")).strip():
        rule = carried("REPLICA_TOPICS_EXCLUDE_REGEX", names, withholds=_TOPICS)
        ledger.note("topic.blacklist", link.apply(rule, excluded))


def _listed(values: Mapping[str, str]) -> Sequence[str]:
    """The topics, if they are chosen by their names alone."""
    listed = values.get("topic.whitelist", "").split(",") if not values.get("topic.regex", "").strip() else []
    return [topic.strip() for topic in listed if topic.strip()]


def _naming(source: str, renamed: str, before: str, after: str, listed: Sequence[str]) -> Translation:
    """The outcome for the name of a copy: the topic's, alone or with a cluster's before it or a suffix after it.

    Of topics that are listed, any name; a single one may have a fixed name.
    """
    if renamed == _TOPIC:
        return Translation(Verdict.CARRIED, "", {"REPLICA_TOPICS_NAMING": TopicNaming.IDENTICAL})
    separated = re.fullmatch(r"([._-]+)([a-zA-Z0-9].*)", after)
    if not before and separated:
        return _names(TopicNaming.SUFFIX, separated[1], separated[2])
    if not after and before.startswith(source) and re.fullmatch(r"[._-]+", before.removeprefix(source)):
        return _names(TopicNaming.PREFIX, before.removeprefix(source), "")
    if listed and (_TOPIC in renamed or len(listed) == 1):
        copies = ",".join(f"{topic}={renamed.replace(_TOPIC, topic)}" for topic in dict.fromkeys(listed))
        variables = {"REPLICA_TOPICS_NAMING": TopicNaming.MAP, "REPLICA_TOPICS_NAMES": copies}
        return Translation(Verdict.CARRIED, "", variables)
    return Translation(
        Verdict.LEFT,
        "a copy is named topic.suffix, cluster.topic or topic, or topics are listed; choose REPLICA_TOPICS_NAMING",
        withheld=("REPLICA_TOPICS_NAMING",),
    )


def _names(naming: TopicNaming, separator: str, suffix: str) -> Translation:
    of_suffix = {"REPLICA_TOPICS_DEST_SUFFIX": suffix} if suffix else {}
    variables = {"REPLICA_TOPICS_NAMING": naming, "REPLICA_TOPICS_SEPARATOR": separator, **of_suffix}
    return Translation(Verdict.CARRIED, "", variables)


def _left_over(key: str) -> Translation:
    """The outcome for a key that no rule was applied to."""
    reason = next((reason for beginning, reason in BEGINNINGS.items() if key.startswith(beginning)), None)
    if reason is not None:
        return Translation(Verdict.LEFT, reason)
    client = re.match(r"(?:src|dest)\.(?:kafka|consumer|producer)\.|(?:producer|consumer|admin)\.(?:override\.)?", key)
    if client:
        return left_of_a_client(key.removeprefix(client[0]), "client")
    if key.startswith("src."):
        return Translation(Verdict.LEFT, TUNING)
    return Translation(Verdict.LEFT, "not known as a key of Confluent Replicator")
