"""Making a link once, and checking at every later start that it is unchanged."""

import asyncio
import contextlib
import logging
import random
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from appliance.clock import now_ms
from appliance.driver.unfinished_layout import end_unfinished, is_left_by_a_replicator
from appliance.engine.write.lane import Lane
from appliance.errors import BrokerBusy, BrokerRefused, Fenced, LayoutChanging, LinkRefused, OutcomeUnknown, raise_first
from appliance.grouping import grouped
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.configs import POLICY, Setting, cleanup_policy, try_describe
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets, try_offsets_at
from appliance.kafka.client.topics import NewTopic, require_led
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.records import Record
from appliance.link.client.checkpoint_log import peek_checkpoints
from appliance.link.client.registry import Registry
from appliance.link.client.retry import retry_while_busy
from appliance.link.client.source_places import try_places
from appliance.link.model.checkpoint import LinkRecord, Owner, StartOffsets
from appliance.link.model.checkpoint_records import encode_forgotten, encode_link, encode_starts
from appliance.link.model.copy_states import LINK, CopyState, effective
from appliance.link.model.layout import Layout
from appliance.link.model.link_check import (
    ADOPT,
    PositionsTopic,
    layout_fault,
    link_fault,
    policy_fault,
    producers_fault,
    was_deleted,
)
from appliance.link.model.link_sql import LinkSql, link_sql, salt_digest
from appliance.link.model.naming import PRODUCERS, REGISTRY, Naming
from appliance.link.model.position import NO_PLACE
from appliance.link.model.topic_configs import (
    offsets_topic,
    positions_changes,
    positions_topic,
    producers_changes,
    producers_topic,
    told,
)
from appliance.settings.values import Settings, Start
from appliance.sql.model.statement import Statement

log = logging.getLogger("appliance.replicator")

_TRIES = 20
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Established:
    """A link that may continue: its layout, the number of this run, and the beginnings of partitions.

    ``producers`` is the id of the source's topic of producers, if the link has to know who wrote at the source.
    ``owners`` are those of the lanes, and ``copied`` are the bytes ever copied of each partition. ``sql`` is the SQL of
    this run.
    """

    layout: Layout
    generation: int
    starts: Mapping[str, StartOffsets] = field(default_factory=dict)
    producers: uuid.UUID | None = None
    owners: Sequence[Owner] = ()
    copied: Mapping[Partition, int] = field(default_factory=dict)
    sql: LinkSql = field(default_factory=LinkSql)


@dataclass(slots=True)
class Establishing:
    """Checks a link's topics, and makes missing ones; ``run`` names the process, ``statement`` is the link's SQL.

    ``naming`` are the link's names.
    """

    settings: Settings
    source: Cluster
    destination: Cluster
    run: str
    statement: Statement | None = None
    naming: Naming = field(init=False)
    _registry: Registry = field(init=False)

    def __post_init__(self) -> None:
        self.naming = Naming.of(self.settings)
        self._registry = Registry(self.destination, self.settings.replicator)

    async def establish(self) -> Established:
        """Make the link if it is new; else check that it is unchanged.

        Safe to repeat after a cancel at any await: one transaction makes the link, and nothing is copied before.

        Raises:
            LinkRefused: it has changed.
            LayoutChanging: a command is changing its layout.
            Fenced: another replicator is making it.
        """
        registry = self._registry
        await registry.refresh()
        if registry.deletion:  # before anything is made
            raise LinkRefused(was_deleted(registry.link, registry.deletion))
        await self.make_topic()
        await self._make_offsets_topic()
        await self._make_producers_topics()
        await self._bound()
        for _ in range(_TRIES):
            topic = await self.look_at_made()
            if changing := layout_fault(topic):
                if topic.link is None or not is_left_by_a_replicator(topic.checkpoints):
                    raise LayoutChanging(changing)
                writing = end_unfinished(self.destination, self.naming, self.settings.engine.transaction_timeout)
            elif fault := await self.fault(topic):
                raise LinkRefused(fault)
            elif topic.link is not None:
                return replace(_established(topic, topic.link), sql=self._sql(topic))
            else:
                writing = self._write_down(topic)
            # A simultaneous start that does the same fences this one, or is fenced.
            with contextlib.suppress(Fenced, OutcomeUnknown):
                await writing
            await asyncio.sleep(_PAUSE * random.random())
        raise BrokerBusy(f"{self.naming.positions_topic} is being written by another start of this link", "FENCED")

    def _sql(self, topic: PositionsTopic) -> LinkSql:
        """The SQL of this run, which each lane writes down before it copies."""
        salt = salt_digest(self.settings.transform.salt.reveal())
        return link_sql(topic.sql_changes, self.statement.text if self.statement else "", salt)

    async def look(self) -> PositionsTopic:
        """The current positions topic; without partitions when it does not exist."""
        name = self.naming.positions_topic
        known = (await self.destination.metadata([name])).topics.get(name)
        if known is None or not known.leaders:
            return PositionsTopic(name, "", ())
        policy = (await self._settings_of(name)).get(POLICY)
        checkpoints = await peek_checkpoints(self.destination, name, len(known.leaders))
        return PositionsTopic(name, (policy and policy.value) or "", checkpoints)

    async def look_at_made(self) -> PositionsTopic:
        """The positions topic after ``make_topic``. A broker that lags may not show it at first.

        Raises:
            BrokerBusy: it stays invisible for long.
        """
        return await retry_while_busy(self._look_if_shown)

    async def _look_if_shown(self) -> PositionsTopic:
        topic = await self.look()
        if not topic.checkpoints:
            raise BrokerBusy(f"{topic.name} was made and is not shown yet", "LEADER_NOT_AVAILABLE")
        return topic

    async def _settings_of(self, topic: str) -> Mapping[str, Setting]:
        described, failures = await try_describe(self.destination, [topic])
        raise_first(failures.values())
        return described[topic]

    async def checked(self) -> PositionsTopic:
        """The positions topic of an existing link that may continue.

        Raises:
            LinkRefused: it does not exist, or may not continue.
        """
        topic = await self.look()
        if fault := await self.fault(topic):
            raise LinkRefused(fault)
        if not topic.checkpoints:
            raise LinkRefused(f"there is no {topic.name}: no replicator of this link has ever run")
        return topic

    async def _bound(self) -> None:
        """Shorten the time that a topic of an older release keeps commit markers."""
        name = self.naming.positions_topic
        changes = positions_changes(await self._settings_of(name))
        if not changes:
            return
        changed = await ConfigFilter(self.destination).change({name: changes})
        for error in changed.failures.values():
            command = ",".join(f"{key}={value}" for key, value in changes.items())
            log.warning(f"{error}: a start of the replicator reads less after `--add-config {command}`")

    async def fault(self, topic: PositionsTopic) -> str:
        """The reason that the link must not continue; empty when it may."""
        registry = self._registry
        await registry.refresh()
        if fault := policy_fault(REGISTRY, await cleanup_policy(self.destination, REGISTRY)):
            return fault
        if registry.deletion:
            return was_deleted(registry.link, registry.deletion)
        if fault := await self._producers_policy_fault():
            return fault
        own = registry.own(await self.destination.metadata(None))
        source = await self.source.metadata([PRODUCERS] if self.naming.sharing.tells_origins else [])
        fault = link_fault(topic, source.cluster_id, own, self.naming)
        return fault or producers_fault(topic.link, source.topics.get(PRODUCERS), self.naming)

    async def _producers_policy_fault(self) -> str:
        """The fault of a topic of producers, at either side, whose names may be deleted; empty if none is known."""
        sharing = self.naming.sharing
        sides = {self.destination: sharing.others_write, self.source: sharing.tells_origins}
        for cluster in (cluster for cluster, wanted in sides.items() if wanted):
            if fault := policy_fault(PRODUCERS, await cleanup_policy(cluster, PRODUCERS)):
                return fault
        return ""

    async def adopt(self) -> list[str]:
        """Adopt the positions topic as it is now, and forget the positions in the wrong lanes' partitions.

        Returns:
            The changes, a line each; none when the link is unchanged.

        Raises:
            LinkRefused: something else must change first.
            Fenced, Unreachable, BrokerBusy, BrokerRefused, PeerError: as everywhere; a repeated call continues.
        """
        topic = await self.look()
        fault = await self.fault(topic)
        if not fault:
            return []
        if ADOPT not in fault:
            raise LinkRefused(fault)
        if any(effective(each.states, LINK) is CopyState.DELETED for each in topic.checkpoints):
            raise LinkRefused(f"{self.settings.replicator} is being deleted: `appliance link delete` again ends that")
        await self.make_topic()
        await self._make_producers_topics(anew=True)
        topic = await self.look_at_made()
        done = await self._forget_misplaced(topic)
        registry = self._registry
        if self.naming.sharing.others_write:
            await registry.note_begun()
            # No lane may take itself for one that has never written: a position may be lost of what another has copied.
            for index in range(topic.lanes):
                await self._lane(topic, index).start()
        link = await self._link_record(topic)
        await self._remember(topic, 0, [encode_link(link, link.made)])
        await registry.refresh()
        await registry.withdraw_deletion()
        if fault := await self.fault(await self.look_at_made()):
            raise LinkRefused(fault)
        return [*done, f"{topic.name}: {link.partitions} partitions, {link.lanes} lanes, source {link.source_cluster}"]

    async def _forget_misplaced(self, topic: PositionsTopic) -> list[str]:
        misplaced = grouped(topic.misplaced(topic.layout))
        for index, keys in misplaced.items():
            await self._remember(topic, index, [encode_forgotten(key, now_ms()) for key in keys])
        return [
            f"{topic.name}-{index}: forgot the position of {partition}"
            for index, keys in misplaced.items()
            for partition in keys
        ]

    async def _remember(self, topic: PositionsTopic, index: int, records: Sequence[Record]) -> None:
        """Write them into a lane's partition; returns when they are visible there."""
        lane = self._lane(topic, index)
        await lane.start()
        await lane.remember(records)
        # The broker answers a commit before it writes the markers; a lane that starts reads until it sees its own.
        await self._lane(topic, index).start()

    async def make_topic(self) -> None:
        """Make the positions topic, if there is none.

        Two processes may race to make it: the number of partitions is read again.
        """
        name = self.naming.positions_topic
        known = (await self.destination.metadata([name])).topics.get(name)
        if known is not None and known.leaders:
            return
        lanes = self.settings.engine.lanes or self.settings.engine.task_count
        await self._make(positions_topic(self.naming, lanes, self.settings.topics.replication_factor))
        log.info("positions topic made", extra={"fields": {"topic": name, "lanes": lanes}})

    async def _make_offsets_topic(self) -> None:
        """Make the topic of the maps of offsets, if there is none; a link without the right to make it still copies."""
        names = [self.naming.positions_topic, self.naming.offsets_topic]
        positions, offsets = map((await self.destination.metadata(names)).topics.get, names)
        if positions is None or offsets is not None:
            return
        lanes = len(positions.leaders)
        try:
            await self._make(offsets_topic(self.naming, lanes, self.settings.topics.replication_factor))
        except BrokerRefused as error:
            log.warning(f"{error}: offsets are translated as far as the newest transactions alone")

    async def _make_producers_topics(self, anew: bool = False) -> None:
        """Make the topics of producers: that of the destination if copies are shared, and with identical names that of
        the source too, so that one that is lost later is not taken for one that was never made.

        A lost one of the source is made ``anew`` only if the operator has said so.
        """
        if self.naming.sharing.others_write:
            await self._make_producers_topic(self.destination)
        if self.naming.sharing.tells_origins and (anew or (await self.look()).link is None):
            await self._make_producers_topic(self.source)

    async def _make_producers_topic(self, cluster: Cluster) -> None:
        known = (await cluster.metadata([PRODUCERS])).topics.get(PRODUCERS)
        if known is not None:
            key = "SOURCE_API_KEY" if cluster is self.source else "DESTINATION_API_KEY"
            check(known.error, f"look for {PRODUCERS}: grant {key} Create, Describe, Read and Write on it")
            return
        await self._make(producers_topic(self.settings.topics.replication_factor), cluster)
        made = (await cluster.metadata([PRODUCERS])).topics.get(PRODUCERS)
        if changes := producers_changes(made.in_sync[0] if made else 0):
            changed = await ConfigFilter(cluster).change({PRODUCERS: changes})
            raise_first(changed.failures.values())

    async def _make(self, new: NewTopic, cluster: Cluster | None = None) -> None:
        made = await ConfigFilter(cluster or self.destination).make([new])
        raise_first(made.failures.values())
        if made.left_out:
            log.warning("settings left out", extra={"fields": told(made.left_out)})
        await retry_while_busy(partial(require_led, cluster or self.destination, {new.name: 1}))

    async def _write_down(self, topic: PositionsTopic) -> None:
        """Record the link's construction in one transaction, so that all of it holds, or none."""
        lane = self._lane(topic, 0)
        await lane.start()
        if lane.checkpoint.link is not None:
            return  # another start was first
        link = await self._link_record(topic)
        begins_later = topic.is_new and self.settings.topics.start is not Start.EARLIEST
        starts = await self._starts(link.made) if begins_later else []
        await lane.remember([*(encode_starts(each, link.made) for each in starts), encode_link(link, link.made)])
        log.info("link made", extra={"fields": {"lanes": link.lanes, "source": link.source_cluster}})

    async def _link_record(self, topic: PositionsTopic) -> LinkRecord:
        source = await self.source.metadata([PRODUCERS] if self.naming.sharing.tells_origins else [])
        producers = source.topics.get(PRODUCERS)
        if self.naming.sharing.tells_origins and producers is None:
            raise BrokerBusy(f"{PRODUCERS} of the source is not shown", "UNKNOWN_TOPIC_OR_PARTITION")
        known = producers.id.hex if producers else ""
        made = LinkRecord(source.cluster_id, topic.lanes, 0, now_ms(), known)
        return made.laid_out(topic.layout, len(topic.checkpoints))

    async def _starts(self, now: int) -> Sequence[StartOffsets]:
        """The place in each source partition of its first record that is as new as the settings say.

        It is the end if there is no such record, and -1, its first record, if the place is unknown.
        """
        start = self.settings.topics.start
        time = start.time(now)
        if time is not None and time > now:
            raise LinkRefused(f"REPLICA_TOPICS_START={start.text}: expected a time in the past, or latest")
        metadata: Metadata = await self.source.metadata(None)
        topics = [topic for topic in self.naming.copied(metadata.topics) if topic.leaders]
        partitions = [partition for topic in topics for partition in topic.partitions]
        offsets, failures = await try_offsets(self.source, metadata, partitions, Bound.STABLE_END)
        if time is not None:
            since, silent = await try_offsets_at(self.source, metadata, offsets, time)
            offsets = {key: offsets[key] if offset is None else offset for key, offset in since.items()}
            failures |= silent
        found, untold = await try_places(self.source, metadata, offsets)
        for partition, error in (failures | untold).items():
            place = "its end is" if time is None else "the offset of REPLICA_TOPICS_START is"
            log.warning(f"{partition} is copied from its first record on, since {place} not known: {error}")
        begins = {t.name: tuple(found.get(partition, NO_PLACE) for partition in t.partitions) for t in topics}
        return [StartOffsets(topic.name, topic.id, begins[topic.name]) for topic in topics]

    def _lane(self, topic: PositionsTopic, index: int) -> Lane:
        owner = Owner(self.run, "driver", socket.gethostname(), now_ms(), topic.generation)
        timeout, number = self.settings.engine.transaction_timeout, topic.layout.number
        return Lane(index, self.destination, self.naming, owner, timeout, number)


def _established(topic: PositionsTopic, link: LinkRecord) -> Established:
    producers = uuid.UUID(link.producers) if link.producers else None
    owners = [each.owner for each in topic.checkpoints if each.owner]
    copied = {key: held.bytes for each in topic.checkpoints for key, held in each.positions.items()}
    return Established(topic.layout, topic.generation, topic.checkpoints[0].starts, producers, owners, copied)
