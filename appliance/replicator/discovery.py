"""Looking at both clusters every few seconds: which topics there are, and which copies have to be made first."""

import logging
from collections.abc import Mapping, Sequence

from appliance.errors import ApplianceError
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.metadata import Topic
from appliance.kafka.topics import NewTopic, configs, create_topics
from appliance.replicator.naming import Naming
from appliance.replicator.plan import Discovery, discover
from appliance.settings.values import TopicSettings

log = logging.getLogger("appliance.replicator")

# What does not carry over to another cluster, as MirrorMaker 2 has it, and the throttles of the source's own moves.
_NOT_COPIED = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)
_ANY_TIME = str(2**63 - 1)
_TIMES_KEPT = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": _ANY_TIME,
    "message.timestamp.after.max.ms": _ANY_TIME,
}
"""Every record keeps its source's time, however old or early (invariant E)."""


async def look(source: KafkaCluster, destination: KafkaCluster, naming: Naming, topics: TopicSettings) -> Discovery:
    """One look; copies that are missing are made, and the look repeated.

    Raises:
        Unreachable, BrokerBusy, BrokerRefused: as everywhere.
    """
    found = discover(await source.metadata(None), await destination.metadata(None), naming)
    if not found.missing:
        return found
    failures = await _make(found.missing, source, destination, naming, topics)
    again = discover(await source.metadata(None), await destination.metadata(None), naming)
    unfit = {**again.unfit, **{name: str(error) for name, error in failures.items()}}
    return Discovery(again.replicas, again.missing, unfit)


async def _make(
    missing: Sequence[Topic],
    source: KafkaCluster,
    destination: KafkaCluster,
    naming: Naming,
    topics: TopicSettings,
) -> dict[str, ApplianceError]:
    set_at_source = await configs(source, [topic.name for topic in missing])
    wanted = [
        NewTopic(
            naming.destination(topic.name),
            len(topic.leaders),
            topics.replication_factor,
            copied_configs(set_at_source.get(topic.name, {})),
        )
        for topic in missing
        if topic.leaders
    ]
    failures = await create_topics(destination, wanted)
    for topic in wanted:
        if topic.name not in failures:
            log.info("topic made", extra={"fields": {"topic": topic.name, "partitions": topic.partitions}})
    return failures


def copied_configs(set_at_source: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a copy, given what was set on its source topic."""
    return {key: value for key, value in set_at_source.items() if key not in _NOT_COPIED} | _TIMES_KEPT
