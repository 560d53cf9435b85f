"""The offset maps of a link, as the destination has them; the source is never asked.

A map's tail lies in the positions topic, the rest in the topic of the maps. Both commit in one transaction, whose
markers reach partitions one by one: so the positions are read first, and then the segments at least as far as anybody
had written to them by then.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from uuid import UUID

from appliance.errors import BrokerBusy
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.client.checkpoint_log import peek_checkpoint, read_records
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.naming import Naming
from appliance.link.model.offset_map import NOT_KNOWN, OffsetMap, Segment, overlaid, without
from appliance.link.model.offset_records import decode_segment
from appliance.link.model.position import Position
from appliance.link.model.translation import Translation


class OffsetMaps:
    """The maps of all partitions of a link, as of the last ``refresh``."""

    def __init__(self, destination: Cluster, naming: Naming) -> None:
        self._cluster = destination
        self._naming = naming
        self._ids: tuple[UUID | None, ...] = ()
        self._checkpoints: tuple[LaneCheckpoint, ...] = ()
        self._read_to: dict[Partition, int] = {}
        self._segments: dict[Partition, list[Segment]] = {}
        self._maps: dict[Partition, OffsetMap] = {}

    async def refresh(self) -> None:
        """Read what has been committed since; cut off at any await, it goes on from there the next time.

        Raises:
            BrokerBusy, BrokerRefused, Unreachable, PeerError: as everywhere.
        """
        names = self._naming.positions_topic, self._naming.offsets_topic
        metadata = await self._cluster.metadata(list(names))
        topics = [metadata.topics.get(name) for name in names]
        for topic in topics:
            if topic is not None:
                check(topic.error, f"look for {topic.name}")
        ids = tuple(topic.id if topic else None for topic in topics)
        lanes, parts = (len(topic.leaders) if topic else 0 for topic in topics)
        if ids != self._ids or lanes != len(self._checkpoints):
            self._ids, self._checkpoints = ids, tuple(LaneCheckpoint() for _ in range(lanes))
            self._read_to, self._segments, self._maps = {(names[1], number): -1 for number in range(parts)}, {}, {}
        await asyncio.gather(*(self._read_positions(names[0], lane) for lane in range(lanes)))
        written = await list_offsets(self._cluster, metadata, list(self._read_to), Bound.END)
        if any(self._read_to[partition] > end for partition, end in written.items()):
            self._ids = ()  # the log has lost its tail: what is there now may be other segments
            return await self.refresh()
        await asyncio.gather(*(self._read_segments(metadata, partition, end) for partition, end in written.items()))
        return None

    def positions(self) -> Iterator[tuple[Partition, Position]]:
        """The position of each source partition."""
        for checkpoint in self._checkpoints:
            yield from checkpoint.positions.items()

    def position(self, partition: Partition) -> Position | None:
        """The position of a source partition; None where nothing is copied."""
        return next((c.positions[partition] for c in self._checkpoints if partition in c.positions), None)

    def copies(self) -> Mapping[Partition, Partition]:
        """The source partition of each copy."""
        return {(self._naming.destination(topic), number): (topic, number) for (topic, number), _ in self.positions()}

    def translate(self, partition: Partition, offset: int) -> Translation:
        """The offset of the copy at which a consumer continues that has read a source partition up to ``offset``."""
        return self._map(partition).translate(offset)

    def reverse(self, copy: Partition, offset: int) -> Translation:
        """The source offset at which a consumer continues that has read a copy up to ``offset``."""
        source = self.copies().get(copy)
        return self._map(source).reverse(offset) if source else NOT_KNOWN

    def holes(self, partitions: Collection[Partition] | None = None) -> dict[Partition, list[tuple[int, int]]]:
        """The stretches of each copy of which no map knows anything, by source partition; only where there are any."""
        chosen = [partition for partition, _ in self.positions() if partitions is None or partition in partitions]
        found = {partition: self._map(partition).holes() for partition in chosen}
        return {partition: holes for partition, holes in found.items() if holes}

    def _map(self, partition: Partition) -> OffsetMap:
        position, known = self.position(partition), self._maps.get(partition)
        if known is None or known.position is not position:
            known = self._maps[partition] = OffsetMap(self._segments.get(partition, ()), position)
        return known

    async def _read_positions(self, topic: str, lane: int) -> None:
        await peek_checkpoint(self._cluster, topic, lane, self._checkpoints[lane])

    async def _read_segments(self, metadata: Metadata, partition: Partition, end: int) -> None:
        """Read up to ``end``, for which a transaction that is open there has to end first."""
        while self._read_to[partition] < end:
            await retry_while_busy(lambda: self._read_some(metadata, partition, end))

    async def _read_some(self, metadata: Metadata, partition: Partition, end: int) -> None:
        at = self._read_to[partition]
        records, following = await read_records(self._cluster, metadata, partition, at)
        for record in records:
            (of, begin), segment = decode_segment(record)
            older = self._segments.get(of, [])
            self._segments[of] = overlaid(older, segment) if segment else without(older, begin)
            self._maps.pop(of, None)
        self._read_to[partition] = following
        if following == at and at < end:
            raise BrokerBusy(f"a transaction is open in {partition[0]}-{partition[1]}", "CONCURRENT_TRANSACTIONS")
