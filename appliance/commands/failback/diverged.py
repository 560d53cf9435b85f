"""The records that a source held when it was lost and that were never copied, kept in a topic of their own.

The lanes of the link in reverse copy them within the source cluster, to the same partition numbers, before anything is
copied back. A lane commits its progress in the transaction that writes the records, as for any partition: each record
is kept once, despite kills. The next failback adds to the same topic.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from appliance.commands.failback.reverse_link import ReverseLink, reversed_replica
from appliance.engine.model.chunk import Chunk
from appliance.engine.write.copies import CopyExaminer
from appliance.engine.write.lane import Lane
from appliance.errors import LinkRefused, raise_first
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.configs import LARGEST_BATCH, configs, write_limits
from appliance.kafka.client.fetch import FetchLimits, fetch_partition
from appliance.kafka.client.offsets import Bound, list_offsets, undecided
from appliance.kafka.client.topics import NewTopic, require_led
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic, is_another
from appliance.kafka.records.committed import committed
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.outgoing import outgoing
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import Gap
from appliance.link.model.position import NO_PLACE, Position, SourcePlace
from appliance.link.model.replicas import Replica
from appliance.link.model.topic_configs import copied_configs
from appliance.settings.topics import TOPIC_NAME_MAX

_LIMITS = FetchLimits(1024 * 1024, wait=0.5)
_FOR_EVER = {"retention.ms": "-1", "retention.bytes": "-1"}


def require_names(link: ReverseLink, topics: Collection[str]) -> None:
    """Check that the topics for the kept records can be made."""
    for topic in topics:
        if len(name := link.operation.naming.diverged(topic)) > TOPIC_NAME_MAX:
            raise LinkRefused(f"{name} is longer than a topic's name may be: {topic} cannot be kept: leave it there")


async def keep(link: ReverseLink, replicas: Sequence[Replica]) -> None:
    """Keep the uncopied records of these partitions' sources that are not kept yet."""
    beginnings = {r: begun for r in replicas if (begun := link.beginning(r)) and begun.first < begun.next}
    if not beginnings:
        return
    metadata = await _make_topics(link, sorted({replica.source_topic for replica in beginnings}))
    back = {reversed_replica(replica): replica for replica in beginnings}

    async def write(lane: Lane, owned: Sequence[Replica]) -> None:
        for replica in map(back.__getitem__, owned):
            name, number = link.operation.naming.diverged_partition(replica.source)
            # Its position is kept by this name: the source topic's may be that of a copy.
            destination = Replica(name, number, name, replica.source_id, metadata.topics[name].id)
            begun, position = beginnings[replica], link.kept_position(replica)
            await _DivergedCopier(link, lane, replica.source, destination, begun, position).copy()

    await link.in_lanes(beginnings, write)


def kept(link: ReverseLink, replica: Replica) -> int | None:
    """Number of records of a partition kept in this failback; None where none should be."""
    begun, position = link.beginning(replica), link.kept_position(replica)
    return position.records if position and begun and begun.first < begun.next <= position.next_offset else None


async def _make_topics(link: ReverseLink, topics: Sequence[str]) -> Metadata:
    """Make the missing topics, with as many partitions as their sources have."""
    source, naming = link.operation.source, link.operation.naming
    existing = (await source.metadata([*topics, *map(naming.diverged, topics)])).topics
    new = [existing[topic] for topic in topics if naming.diverged(topic) not in existing]
    settings = await configs(source, [topic.name for topic in new])
    new_topics = [_new(naming.diverged(topic.name), topic, settings.get(topic.name, {})) for topic in new]
    raise_first((await ConfigFilter(source).make(new_topics)).failures.values())
    return await retry_while_busy(lambda: _led(link, topics))


def _new(name: str, topic: Topic, settings: Mapping[str, str]) -> NewTopic:
    limits = {LARGEST_BATCH: settings[LARGEST_BATCH]} if LARGEST_BATCH in settings else {}
    return NewTopic(name, len(topic.leaders), -1, {**copied_configs({}), **_FOR_EVER, **limits})


async def _led(link: ReverseLink, topics: Sequence[str]) -> Metadata:
    names = {topic: link.operation.naming.diverged(topic) for topic in topics}
    existing = (await require_led(link.operation.source, dict.fromkeys(names.values(), 1))).topics
    metadata = await link.operation.source.metadata([*topics, *names.values()])
    for topic, name in names.items():
        if len(existing[name].leaders) < len(metadata.topics[topic].leaders):
            raise LinkRefused(
                f"{name} has fewer partitions than {topic}: give it {len(metadata.topics[topic].leaders)}"
            )
    return metadata


@dataclass(slots=True)
class _DivergedCopier:
    """The records of one ``diverged`` source partition, in a fenced lane."""

    link: ReverseLink
    lane: Lane
    diverged: Partition
    replica: Replica
    begun: Gap
    position: Position | None

    async def copy(self) -> None:
        """Copy up to where the failback began, one transaction after the other."""
        source, replica = self.link.operation.source, self.replica
        position = self.position if self.position and _is_of(self.position, replica) else None
        metadata = await self.lane.learn({self.diverged.topic, replica.destination_topic})
        examiner = CopyExaminer(source, metadata, self.lane.producer.id, {})
        ends = await examiner.examine({replica.copy: position.copy_end if position else None})
        raise_first(ends.refused.values())
        self.lane.expect_ends(ends.ends, metadata)
        limits, failures = await write_limits(source, {replica.destination_topic})
        raise_first(failures.values())
        base, at = await self._beginning(metadata, position)
        while at < self.begun.next:
            chunk = await self._chunk(metadata, at, limits[replica.destination_topic].batch_bytes)
            await self.lane.commit([chunk], base)
            base, at = {}, chunk.next_offset

    async def _beginning(self, metadata: Metadata, position: Position | None) -> tuple[dict[Replica, Position], int]:
        """The first position in this failback, if still unwritten, and the offset to continue from."""
        replica = self.replica
        starts = await list_offsets(self.link.operation.source, metadata, [self.diverged], Bound.START)
        start, ids = starts[self.diverged], (replica.source_id, replica.destination_id)
        if position is None or position.next_offset <= self.begun.first:
            position = Position(*ids, *NO_PLACE, copy_end=position.copy_end if position else None)
        elif start <= position.next_offset:
            return {}, position.next_offset
        place = SourcePlace(max(self.begun.first, start), metadata.leader_epoch(*self.diverged))
        return {replica: position.begin_again(*ids, place)}, place.offset

    async def _chunk(self, metadata: Metadata, at: int, limit: int) -> Chunk:
        """The batches of one Fetch, without records copied back since."""
        source, end = self.link.operation.source, self.begun.next
        fetched = await fetch_partition(source, metadata, self.diverged, at, "failback", _LIMITS)
        batches = list(fetched.batches(convert))
        if not batches and fetched.stable_end < end:
            raise undecided(self.diverged, end)
        old = [each for each in committed(batches, fetched.aborted) if each.header.base_offset < end]
        following = batches[-1].header.last_offset + 1 if batches else end
        epoch = batches[-1].header.leader_epoch if batches else -1
        return Chunk(self.replica, tuple(outgoing(old, at, limit)), min(following, end), epoch)


def _is_of(position: Position, replica: Replica) -> bool:
    another = (
        is_another(position.source_id, replica.source_id),
        is_another(position.destination_id, replica.destination_id),
    )
    return not any(another)
