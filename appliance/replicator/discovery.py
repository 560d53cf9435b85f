"""Looking at both clusters every few seconds: which topics there are, and what has to be done to their copies first."""

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.errors import ApplianceError
from appliance.kafka.cluster import KafkaCluster
from appliance.kafka.configs import LARGEST_BATCH, alter_configs, configs
from appliance.kafka.metadata import Metadata, Topic
from appliance.kafka.topics import NewTopic, create_topics, grow_topics
from appliance.replicator.memory import Memory
from appliance.replicator.naming import Naming
from appliance.replicator.plan import Discovery, discover, too_small
from appliance.replicator.recall import peek_memory
from appliance.replicator.turns import Turns
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

_CONFIGS_FOLLOWED_IN = 5
_CONFIGS_A_LOOK = 50
"""Of few topics each one's configuration is followed every five looks, of many so many at each look."""

_SHOWN_PATIENCE = 2.0
_SHOWN_PAUSE = 0.005
_SHOWN_PAUSE_MAX = 0.1


@dataclass(slots=True)
class Scout:
    """Looks at both clusters, and keeps the copies' topics as their sources' are."""

    source: KafkaCluster
    destination: KafkaCluster
    naming: Naming
    topics: TopicSettings
    _turns: Turns = field(default_factory=lambda: Turns(_CONFIGS_FOLLOWED_IN, _CONFIGS_A_LOOK))
    _followed: dict[str, dict[str, str]] = field(default_factory=dict)
    _known: tuple[Metadata, Metadata] | None = None
    _found: Discovery = field(default_factory=Discovery)

    async def look(self) -> Discovery:
        """One look; copies that are missing are made, ours that are too small are grown, and the look is repeated.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused: as everywhere.
        """
        found = await self._discover()
        failures = await self._make(found.missing) if found.missing else {}
        foreign = await self._grow(found.smaller) if found.smaller else {}
        if found.missing or found.smaller:
            changed = {self.naming.destination(topic.name): len(topic.leaders) for topic in found.missing}
            changed |= {copy.name: len(topic.leaders) for topic, copy in found.smaller if topic.name not in foreign}
            await self._until_shown({name: size for name, size in changed.items() if name not in failures})
            found = await self._discover()
            unfit = {**found.unfit, **{name: str(error) for name, error in failures.items()}, **foreign}
            found = replace(found, unfit=unfit)
        topics = dict.fromkeys(replica.source_topic for replica in found.replicas)
        await self._follow_configs(self._turns.next(topics))
        return found

    async def _discover(self) -> Discovery:
        source, destination = await self.source.metadata(None), await self.destination.metadata(None)
        if self._known is None or self._known[0] is not source or self._known[1] is not destination:
            self._found = discover(source, destination, self.naming)
            self._known = source, destination
        return self._found

    async def _until_shown(self, partitions: Mapping[str, int]) -> None:
        """Wait until so many partitions of each copy are led, or for two seconds.

        The controller has answered by then, but another broker's metadata says so a moment later; without the wait, the
        topic would begin to be copied only after the next look.
        """
        deadline, pause = time.monotonic() + _SHOWN_PATIENCE, _SHOWN_PAUSE
        while partitions and time.monotonic() < deadline:
            known = await self.destination.metadata(list(partitions))
            if all(_led(known.topics.get(name)) >= count for name, count in partitions.items()):
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _SHOWN_PAUSE_MAX)

    async def _make(self, missing: Sequence[Topic]) -> dict[str, ApplianceError]:
        set_at_source = await configs(self.source, [topic.name for topic in missing])
        wanted = new_copies(missing, set_at_source, self.naming, self.topics.replication_factor)
        failures = await create_topics(self.destination, wanted)
        for topic in wanted:
            if topic.name not in failures:
                log.info("topic made", extra={"fields": {"topic": topic.name, "partitions": topic.partitions}})
        return failures

    async def _grow(self, smaller: Sequence[tuple[Topic, Topic]]) -> dict[str, str]:
        """Grow the copies that are ours, which their positions say; why not, by source topic, for the others."""
        ours = await self._written_by_us()
        growing = {copy.name: len(topic.leaders) for topic, copy in smaller if copy.id in ours}
        failures = await grow_topics(self.destination, growing) if growing else {}
        for name, partitions in growing.items():
            if name not in failures:
                log.info("partitions added", extra={"fields": {"topic": name, "partitions": partitions}})
        foreign = {topic.name: too_small(topic, copy) for topic, copy in smaller if copy.id not in ours}
        failed = {topic.name: str(failures[copy.name]) for topic, copy in smaller if copy.name in failures}
        return {**foreign, **failed}

    async def _written_by_us(self) -> set[uuid.UUID]:
        name = self.naming.positions_topic
        known = (await self.destination.metadata([name])).topics.get(name)
        memories = [Memory() for _ in known.leaders] if known else []
        for lane, memory in enumerate(memories):
            await peek_memory(self.destination, name, lane, memory)
        return {held.destination_id for memory in memories for held in memory.positions.values()}

    async def _follow_configs(self, topics: Sequence[str]) -> None:
        """Set on the copies what is set on their sources; what was unset there since the last look is unset here."""
        if not topics:
            return
        set_at_source = await configs(self.source, topics)
        wanted = {name: copied_configs(entries) for name, entries in set_at_source.items()}
        held = await configs(self.destination, [self.naming.destination(name) for name in topics])
        changes = {}
        for name, entries in wanted.items():
            copy = self.naming.destination(name)
            if change := config_changes(entries, held.get(copy, {}), self._followed.get(name, {})):
                changes[copy] = change
        self._followed |= wanted
        failures = await alter_configs(self.destination, changes) if changes else {}
        for name, change in changes.items():
            if name in failures:
                log.warning("configuration not followed", extra={"fields": {"cause": str(failures[name])}})
            else:
                log.info("configuration followed", extra={"fields": {"topic": name, "changed": sorted(change)}})


def _led(topic: Topic | None) -> int:
    """How many of its partitions have a leader."""
    return sum(leader >= 0 for leader in topic.leaders) if topic else 0


def new_copies(
    topics: Sequence[Topic], set_at_source: Mapping[str, Mapping[str, str]], naming: Naming, replication_factor: int
) -> list[NewTopic]:
    """The copies to be made of source topics, given what was set on each of these."""
    return [
        NewTopic(
            naming.destination(topic.name),
            len(topic.leaders),
            replication_factor,
            copied_configs(set_at_source.get(topic.name, {})),
        )
        for topic in topics
        if topic.leaders
    ]


def copied_configs(set_at_source: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a copy, given what was set on its source topic."""
    return {key: value for key, value in set_at_source.items() if key not in _NOT_COPIED} | _TIMES_KEPT


def config_changes(
    wanted: Mapping[str, str], held: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, str | None]:
    """What to set (or with None to unset) on a copy that holds ``held``, so that it follows its source.

    ``before`` is what was wanted at the last look. What the operator has set on the copy alone stays, and so does a
    larger max.message.bytes: it is how a record that was too large is let through.
    """
    changes: dict[str, str | None] = {
        key: value
        for key, value in wanted.items()
        if held.get(key) != value and not (key == LARGEST_BATCH and int(held.get(key, 0)) > int(value))
    }
    return changes | {key: None for key in before if key not in wanted and key in held}
