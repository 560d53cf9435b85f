"""A start of the replicator: the first one makes the link and its topics, each later one checks it (``link_check``)."""

import asyncio
import contextlib
import logging
import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from appliance.clock import now_ms
from appliance.driver.layout_writer import end_unfinished
from appliance.driver.link_check import LinkCheck, settings_of
from appliance.driver.model.link_facts import Established, Step
from appliance.engine.write.lane import Lane
from appliance.errors import BrokerBusy, BrokerRefused, Fenced, LinkRefused, OutcomeUnknown, raise_first
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets, try_offsets_at
from appliance.kafka.client.topics import NewTopic, require_led
from appliance.kafka.protocol.answer import check
from appliance.kafka.records.records import Record
from appliance.link.client.retry import retry_while_busy
from appliance.link.client.source_places import try_places
from appliance.link.handle import Link
from appliance.link.model.checkpoint import LinkRecord, Owner, StartOffsets
from appliance.link.model.checkpoint_records import encode_link, encode_starts
from appliance.link.model.link_check import PositionsTopic
from appliance.link.model.link_sql import LinkSql, link_sql, salt_digest
from appliance.link.model.naming import PRODUCERS, Naming
from appliance.link.model.position import NO_PLACE
from appliance.link.model.topic_configs import (
    log_fields,
    offsets_topic,
    positions_changes,
    positions_topic,
    producers_changes,
    producers_topic,
)
from appliance.settings.values import Settings, Start
from appliance.sql.model.statement import Statement

log = logging.getLogger("appliance.replicator")

_TRIES = 20
_PAUSE = 0.05


@dataclass(slots=True)
class OwnTopics:
    """Makes the own topics of a link with this number of ``lanes``."""

    link: Link
    lanes: int

    async def make(self) -> None:
        """Make those that are missing."""
        await self.make_positions()
        await self._make_offsets()
        await self.make_producers()
        await self._shorten_kept_markers()

    async def make_positions(self) -> None:
        """Make the positions topic, if there is none.

        Two processes may race to make it: the number of partitions is read again.
        """
        name = self.link.naming.positions_topic
        topic = (await self.link.destination.metadata([name])).topics.get(name)
        if topic is not None and topic.leaders:
            return
        new = positions_topic(self.link.naming, self.lanes, self.link.replication_factor)
        await _make(self.link.destination, new)
        log.info("positions topic made", extra={"fields": {"topic": name, "lanes": self.lanes}})

    async def _make_offsets(self) -> None:
        """Make the topic of the maps of offsets, if there is none; a link without the right to make it still copies."""
        names = [self.link.naming.positions_topic, self.link.naming.offsets_topic]
        positions, offsets = map((await self.link.destination.metadata(names)).topics.get, names)
        if positions is None or offsets is not None:
            return
        new = offsets_topic(self.link.naming, len(positions.leaders), self.link.replication_factor)
        try:
            await _make(self.link.destination, new)
        except BrokerRefused as error:
            log.warning(f"{error}: offsets are translated as far as the newest transactions alone")

    async def make_producers(self, recreate: bool = False) -> None:
        """Make the topics of producers: that of the destination if copies are shared, and with identical names that of
        the source too, so that one that is lost later is not taken for one that was never made.

        A lost one of the source is recreated only if the operator has said so.
        """
        naming = self.link.naming
        if naming.sharing.others_write:
            await self._make_producers_at(self.link.destination)
        if naming.sharing.tells_origins and (recreate or (await self.link.positions()).link is None):
            await self._make_producers_at(self.link.source)

    async def _make_producers_at(self, cluster: Cluster) -> None:
        topic = (await cluster.metadata([PRODUCERS])).topics.get(PRODUCERS)
        if topic is not None:
            key = "SOURCE_API_KEY" if cluster is self.link.source else "DESTINATION_API_KEY"
            check(topic.error, f"look for {PRODUCERS}: grant {key} Create, Describe, Read and Write on it")
            return
        await _make(cluster, producers_topic(self.link.replication_factor))
        topic = (await cluster.metadata([PRODUCERS])).topics.get(PRODUCERS)
        if changes := producers_changes(topic.in_sync[0] if topic else 0):
            raise_first((await ConfigFilter(cluster).change({PRODUCERS: changes})).failures.values())

    async def _shorten_kept_markers(self) -> None:
        """Shorten the time that a positions topic of an older release keeps commit markers."""
        name = self.link.naming.positions_topic
        changes = positions_changes(await settings_of(self.link.destination, name))
        if not changes:
            return
        changed = await ConfigFilter(self.link.destination).change({name: changes})
        for error in changed.failures.values():
            command = ",".join(f"{key}={value}" for key, value in changes.items())
            log.warning(f"{error}: a start of the replicator reads less after `--add-config {command}`")


@dataclass(slots=True)
class Establishing:
    """Makes or checks a link; ``run`` names the process, ``statement`` is the link's SQL."""

    settings: Settings
    link: Link
    run: str
    statement: Statement | None = None
    check: LinkCheck = field(init=False)
    topics: OwnTopics = field(init=False)

    def __post_init__(self) -> None:
        engine = self.settings.engine
        self.check = LinkCheck(self.link)
        self.topics = OwnTopics(self.link, engine.lanes or engine.task_count)

    async def establish(self) -> Established:
        """Make the link if it is new; else check that it is unchanged.

        Safe to repeat after a cancel at any await: one transaction makes the link, and nothing is copied before.
        LinkRefused if it has changed, LayoutChanging while a command changes its layout.
        """
        await self.check.require_kept()  # before anything is made
        await self.topics.make()
        for _ in range(_TRIES):
            topic = await self.check.existing_positions()
            step = (await self.check.facts(topic)).next_step(self.link.naming)
            if step is Step.CONTINUE and topic.link:
                return Established.of(topic, topic.link, self._sql(topic))
            # A simultaneous start that does the same fences this one, or is fenced.
            with contextlib.suppress(Fenced, OutcomeUnknown):
                if step is Step.END_CHANGE:
                    await end_unfinished(
                        self.link.destination, self.link.naming, self.settings.engine.transaction_timeout
                    )
                else:
                    await self._write_record(topic)
            await asyncio.sleep(_PAUSE * random.random())
        raise BrokerBusy(f"{self.link.naming.positions_topic} is being written by another start of this link", "FENCED")

    def _sql(self, topic: PositionsTopic) -> LinkSql:
        """The SQL of this run, which each lane writes down before it copies."""
        salt = salt_digest(self.settings.transform.salt.reveal())
        return link_sql(topic.sql_changes, self.statement.text if self.statement else "", salt)

    async def _write_record(self, topic: PositionsTopic) -> None:
        """Record the link's construction in one transaction, so that all of it holds, or none."""
        lane = self.lane(topic, 0)
        await lane.start()
        if lane.checkpoint.link is not None:
            return  # another start was first
        record, starts = await self.link_record(topic), await self.starts(topic)
        await lane.remember([*starts, encode_link(record, record.made)])
        log.info("link made", extra={"fields": {"lanes": record.lanes, "source": record.source_cluster}})

    async def starts(self, topic: PositionsTopic) -> list[Record]:
        """The records of where a new link begins in each source partition; none if that is the first record."""
        start, now = self.settings.topics.start, now_ms()
        if not topic.is_new or start == Start.EARLIEST:
            return []
        return [encode_starts(each, now) for each in await starts_of(self.link.source, self.link.naming, start, now)]

    async def link_record(self, topic: PositionsTopic) -> LinkRecord:
        """A record of the link between the clusters as they are now."""
        cluster_id, producers = await self.link.source_identity()
        if self.link.naming.sharing.tells_origins and producers is None:
            raise BrokerBusy(f"{PRODUCERS} of the source is not shown", "UNKNOWN_TOPIC_OR_PARTITION")
        record = LinkRecord(cluster_id, topic.lanes, 0, now_ms(), producers.id.hex if producers else "")
        return record.laid_out(topic.layout, len(topic.checkpoints))

    def lane(self, topic: PositionsTopic, index: int) -> Lane:
        """A lane of the link, for this process."""
        owner = Owner(self.run, "driver", socket.gethostname(), now_ms(), topic.generation)
        timeout, number = self.settings.engine.transaction_timeout, topic.layout.number
        return Lane(index, self.link.destination, self.link.naming, owner, timeout, number)


async def starts_of(source: Cluster, naming: Naming, start: Start, now: int) -> Sequence[StartOffsets]:
    """The place in each source partition of its first record that is as new as the settings say.

    It is the end if there is no such record, and -1, its first record, if the place is unknown. ``now`` is in ms.
    LinkRefused if the time has not come yet.
    """
    time = start.time(now)
    if time is not None and time > now:
        raise LinkRefused(f"REPLICA_TOPICS_START={start.text}: expected a time in the past, or latest")
    metadata = await source.metadata(None)
    topics = [topic for topic in naming.copied(metadata.topics) if topic.leaders]
    partitions = [partition for topic in topics for partition in topic.partitions]
    offsets, failures = await try_offsets(source, metadata, partitions, Bound.STABLE_END)
    if time is not None:
        since, silent = await try_offsets_at(source, metadata, offsets, time)
        offsets = {key: offsets[key] if offset is None else offset for key, offset in since.items()}
        failures |= silent
    places, unanswered = await try_places(source, metadata, offsets)
    for partition, error in (failures | unanswered).items():
        place = "its end is" if time is None else "the offset of REPLICA_TOPICS_START is"
        log.warning(f"{partition} is copied from its first record on, since {place} not known: {error}")
    begins = {t.name: tuple(places.get(partition, NO_PLACE) for partition in t.partitions) for t in topics}
    return [StartOffsets(topic.name, topic.id, begins[topic.name]) for topic in topics]


async def _make(cluster: Cluster, new: NewTopic) -> None:
    answer = await ConfigFilter(cluster).make([new])
    raise_first(answer.failures.values())
    if answer.left_out:
        log.warning("settings left out", extra={"fields": log_fields(answer.left_out)})
    await retry_while_busy(partial(require_led, cluster, {new.name: 1}))
