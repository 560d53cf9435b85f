"""The offset maps of a link, from the destination; the source is never asked.

A map's tail lies in the positions topic, the rest in the topic of the maps. Both commit in one transaction, whose
markers reach partitions one by one: so a lane's positions are read first, and then its segments at least up to their
end at that time. An unreadable lane does not affect the others.
"""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from appliance.errors import ApplianceError, BrokerBusy, PeerError, Unreachable, raise_first
from appliance.kafka.client.compacted_log import CompactedLog, read_records
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import NOWHERE, Metadata, Partition, Topic, is_another
from appliance.kafka.records.records import Record, key_and_value
from appliance.link.client.checkpoint_log import peek_checkpoint
from appliance.link.client.retry import is_completing, retry_while_busy
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.naming import Naming
from appliance.link.model.offset_map import Hole, OffsetMap, Segment, exact, run_at, with_tail
from appliance.link.model.offset_records import SegmentKey, segment_key
from appliance.link.model.position import Position
from appliance.link.model.segment_log import SegmentLog
from appliance.link.model.translation import NOT_KNOWN, Translation, TranslationState, not_known

_SILENCE = 5.0
"""Timeout without progress while a lane's maps are read, in seconds."""


class OffsetMaps:
    """The maps of a link's partitions, as of the last ``refresh``.

    ``failures`` are those of unreadable lanes, by lane; ``name`` is the link's. With ``settled``, a ``refresh`` waits
    until all is decided that was written before it; a lane with a transaction that stays open is unreadable.
    """

    def __init__(self, destination: Cluster, naming: Naming, *, settled: bool = False) -> None:
        self.failures: dict[int, ApplianceError] = {}
        self.name = naming.replicator
        self._cluster = destination
        self._naming = naming
        self._settled = settled
        self._ids: tuple[UUID | None, ...] = ()
        self._checkpoints: tuple[LaneCheckpoint, ...] = ()
        self._logs: tuple[SegmentLog, ...] = ()
        self._lanes: dict[Partition, int] = {}
        self._maps: dict[Partition, OffsetMap] = {}
        self._copies: dict[Partition, Partition] | None = None
        self._present: Mapping[str, Topic] = {}

    async def refresh(self, partitions: Collection[Partition] | None = None) -> Mapping[str, ApplianceError]:
        """Read the newly committed records; after a cancel at any await, the next call continues from there.

        Reads only segments of these source ``partitions``, or all, and then looks at their copies: only their offsets
        translate. Returns the failures of unreadable lanes, each with a name for it.
        """
        names = self._naming.positions_topic, self._naming.offsets_topic
        metadata = await self._cluster.metadata(list(names))
        topics = [metadata.topics.get(name) for name in names]
        for topic in topics:
            if topic is not None:
                check(topic.error, f"look for {topic.name}")
        ids = tuple(topic.id if topic else None for topic in topics)
        lanes, parts = (len(topic.leaders) if topic else 0 for topic in topics)
        if ids != self._ids or (lanes, parts) != (len(self._checkpoints), len(self._logs)):
            self._ids, self._checkpoints = ids, tuple(LaneCheckpoint() for _ in range(lanes))
            self._logs = tuple(SegmentLog() for _ in range(parts))
            self.failures, self._lanes, self._maps, self._copies = {}, {}, {}, None
        await asyncio.gather(*(self._read_lane(metadata, lane, partitions) for lane in range(lanes)))
        # The copies after their positions: one that was made in between would not be the one that it was written to.
        asked = sorted(
            {self._naming.destination(topic) for topic, _ in (self._lanes if partitions is None else partitions)}
        )
        self._present = (await self._cluster.metadata(asked)).topics if asked else {}
        return {f"lane {lane} of the offset maps": error for lane, error in sorted(self.failures.items())}

    async def read(self, partitions: Collection[Partition] | None = None) -> None:
        """Read all that is committed, as ``refresh``, where nothing may go on without it."""

        async def read() -> None:
            raise_first((await self.refresh(partitions)).values())

        await retry_while_busy(read)

    @property
    def source_cluster(self) -> str:
        """The id of the link's source cluster; empty if it is unknown."""
        link = self._checkpoints[0].link if self._checkpoints else None
        return link.source_cluster if link else ""

    def failure(self, partition: Partition) -> ApplianceError | None:
        """The reason that nothing is known of a source partition now; None if it was read.

        A partition without a position in any readable lane may belong to an unreadable one.
        """
        lane = self._lanes.get(partition)
        if lane is None:
            return next(iter(self.failures.values()), None)
        return self.failures.get(lane) or (self._logs[lane].damage(partition) if lane < len(self._logs) else None)

    def positions(self) -> Iterator[tuple[Partition, Position]]:
        """The position of each source partition."""
        for checkpoint in self._checkpoints:
            yield from checkpoint.positions.items()

    def position(self, partition: Partition) -> Position | None:
        """The position of a source partition; None if nothing is copied."""
        lane = self._lanes.get(partition)
        return None if lane is None else self._checkpoints[lane].positions.get(partition)

    @property
    def producer_ids(self) -> frozenset[int]:
        """The producer ids of the newest writes, of each lane and into each copy; those before are not remembered."""
        ends = [position.copy_end for _, position in self.positions()]
        marks = [checkpoint.mark for checkpoint in self._checkpoints]
        return frozenset(each.producer_id for each in (*ends, *marks) if each and each.producer_id >= 0)

    def copies(self) -> Mapping[Partition, Partition]:
        """The source partition of each copy."""
        if self._copies is None:
            named = functools.cache(self._naming.destination)
            self._copies = {Partition(named(each.topic), each.number): each for each in self._lanes}
        return self._copies

    def translate(
        self, partition: Partition, offset: int, source_id: UUID = NOWHERE, start: int | None = None
    ) -> Translation:
        """The copy's offset at which a consumer that has read a source partition up to ``offset`` continues.

        With ``source_id`` the offset belongs to the topic with that id, and the copy may hold none of its records
        (invariant G). With ``start``, where the copy's log starts, it is the lowest offset of an unread record
        (invariant O).
        """
        position = self.position(partition)
        if position is not None and is_another(source_id, position.source_id):
            return not_known(f"topic {partition[0]} was made anew at the source, and its copy holds the one before")
        if unknown := self._unknown(partition):
            return unknown
        offset_map = self._map(partition)
        return offset_map.translate(offset) if start is None else offset_map.unread_from(offset, start)

    def reverse(self, copy: Partition, offset: int) -> Translation:
        """The source offset at which a consumer that has read a copy up to ``offset`` continues."""
        if (source := self.copies().get(copy)) is None:
            return NOT_KNOWN
        return self._unknown(source) or self._map(source).reverse(offset)

    def record_at(self, sources: Collection[Partition], offset: int) -> tuple[Partition | None, Translation]:
        """The record at an offset of the one copy of some source partitions: whose it is, and its offset there."""
        end = 0
        for source in sources:
            if unknown := self._unknown(source):
                return None, unknown
            if found := run_at(self.segments(source), offset):
                return source, exact(found[0])
            if run_at(self.all_segments(source), offset):
                return None, not_known(f"it is a record of {source} from before that was made anew")
            position = self.position(source)
            end = max(end, position.copy_end.offset if position and position.copy_end else 0)
        if offset >= end:
            return None, Translation(None, TranslationState.AHEAD, offset - end + 1)
        return None, not_known("no record is there, but the marker of a transaction") if sources else NOT_KNOWN

    def _unknown(self, partition: Partition) -> Translation | None:
        """The unknown answer if a map cannot be read, or its copy is not there now; None if the map answers."""
        if failure := self.failure(partition):
            return not_known(str(failure))
        position, name = self.position(partition), self._naming.destination(partition[0])
        if position is None:
            return NOT_KNOWN
        if (topic := self._present.get(name)) is None:
            return not_known(f"topic {name}, to which it was copied, is not known to be there now")
        if is_another(topic.id, position.destination_id):
            return not_known(f"topic {name} was deleted and made anew since it was copied there")
        return None

    def segments(self, partition: Partition) -> Sequence[Segment]:
        """The map of a source partition; empty if it is unreadable now."""
        return () if self.failure(partition) else self._map(partition).segments

    def all_segments(self, partition: Partition) -> Sequence[Segment]:
        """The map of a source partition, with what its copy has of former topics of that name."""
        position = self.position(partition)
        if position is None or self.failure(partition):
            return ()
        stored = self._stored(partition)
        return with_tail((e for e in stored if not is_another(e.destination_id, position.destination_id)), position)

    def holes(self, partitions: Collection[Partition] | None = None) -> dict[Partition, list[Hole]]:
        """The ranges of copies without a map, by source partition; only partitions with any."""
        mapped = [partition for partition, _ in self.positions() if partitions is None or partition in partitions]
        by_partition = {partition: self._map(partition).holes() for partition in mapped}
        return {partition: holes for partition, holes in by_partition.items() if holes}

    def _map(self, partition: Partition) -> OffsetMap:
        position, cached = self.position(partition), self._maps.get(partition)
        if cached is None or cached.position is not position:
            cached = self._maps[partition] = OffsetMap(self._stored(partition), position)
        return cached

    def _stored(self, partition: Partition) -> Sequence[Segment]:
        """The segments of a source partition in its lane's log, without the map's tail."""
        lane = self._lanes.get(partition, len(self._logs))
        return self._logs[lane].segments(partition) if lane < len(self._logs) else ()

    async def _read_lane(self, metadata: Metadata, lane: int, partitions: Collection[Partition] | None) -> None:
        """Read a lane's positions, then its segments; its failure ends once it has been read."""
        checkpoint = self._checkpoints[lane]
        try:
            await _while_progressing(
                lambda: self._read_positions(metadata, lane, checkpoint), lambda: checkpoint.read_to
            )
            others = {partition: number for partition, number in self._lanes.items() if number != lane}
            self._lanes, self._copies = others | dict.fromkeys(checkpoint.positions, lane), None
            if lane < len(self._logs):
                log = self._logs[lane]
                await _while_progressing(lambda: self._read_segments(metadata, lane, partitions), lambda: log.read_to)
        except TimeoutError:
            text = f"lane {lane} of the offset maps: nothing more could be read of it within {_SILENCE:g} s"
            self.failures[lane] = Unreachable(text)
        except ApplianceError as error:
            self.failures[lane] = error
        else:
            self.failures.pop(lane, None)

    async def _read_positions(self, metadata: Metadata, lane: int, checkpoint: LaneCheckpoint) -> None:
        topic = self._naming.positions_topic
        if not self._settled:
            return await peek_checkpoint(self._cluster, topic, lane, checkpoint)
        own = Partition(topic, lane)
        written = (await list_offsets(self._cluster, metadata, [own], Bound.END))[own]

        async def read() -> None:
            await peek_checkpoint(self._cluster, topic, lane, checkpoint)
            if checkpoint.read_to < written:
                raise BrokerBusy(f"a transaction is open in {own}", "CONCURRENT_TRANSACTIONS")

        return await retry_while_busy(read)

    async def _read_segments(self, metadata: Metadata, lane: int, partitions: Collection[Partition] | None) -> None:
        """Read up to the log's end; an open transaction there has to end first, and a new leader needs new metadata."""
        log, partition = self._logs[lane], Partition(self._naming.offsets_topic, lane)
        own = None if partitions is None else {each for each in partitions if self._lanes.get(each) == lane}
        self._changed(log.want(own))
        if own is not None and not own:
            return
        end = (await list_offsets(self._cluster, metadata, [partition], Bound.END))[partition]
        if log.read_to > end:
            self._changed(log.restart())  # it has lost its tail: it may hold other segments now
        while log.read_to < end:
            await retry_while_busy(lambda: self._read_some(metadata, partition, end), is_completing)

    async def _read_some(self, metadata: Metadata, partition: Partition, end: int) -> None:
        log = self._logs[partition[1]]
        at = log.read_to
        records, following = await read_records(self._cluster, metadata, partition, at)
        for record in records:
            if (of := log.take(record)) is not None:
                self._changed([of])
                await asyncio.sleep(0)  # a segment takes milliseconds to unpack
        log.read_to = following
        if following == at and at < end:
            raise BrokerBusy(f"a transaction is open in {partition}", "CONCURRENT_TRANSACTIONS")

    def _changed(self, partitions: Collection[Partition]) -> None:
        for partition in partitions:
            self._maps.pop(partition, None)


async def segment_records(cluster: Cluster, partition: Partition) -> dict[SegmentKey, Record]:
    """The newest record of each segment in a lane's partition, the last written one last; none without the partition.

    The caller has fenced the lane, so nobody adds to them.
    """
    metadata = await cluster.metadata([partition[0]])
    if metadata.leader(*partition) < 0:
        return {}
    end = (await list_offsets(cluster, metadata, [partition], Bound.END))[partition]
    segments: dict[SegmentKey, Record] = {}

    def take(records: Iterable[Record]) -> None:
        for record in records:
            with contextlib.suppress(PeerError):  # a damaged record does not hide others
                key = segment_key(record)
                segments.pop(key, None)
                if key_and_value(record.body)[1] is not None:
                    segments[key] = record

    log = CompactedLog(cluster, partition, take)
    await log.read(metadata)
    if log.progress.read_to < end:
        raise BrokerBusy(f"a transaction is open in {partition}", "CONCURRENT_TRANSACTIONS")
    return segments


async def _while_progressing(read: Callable[[], Awaitable[None]], progress: Callable[[], int]) -> None:
    """Read, and continue after a timeout, as long as there is progress."""
    while True:
        before = progress()
        try:
            async with asyncio.timeout(_SILENCE):
                return await read()
        except TimeoutError:
            if progress() == before:
                raise
