"""A lane that writes copies: each transaction has them, the positions past them, and their maps of offsets.

Commands that move positions of a lane use it too; ``ownership`` says who may write them.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.clock import loop_seconds, now_ms
from appliance.engine.model.chunk import Chunk, advanced, by_partition, rounds
from appliance.engine.model.map_growth import MapGrowth, MapUpdate, copied_tail, foreign_offsets, read_tail
from appliance.engine.write.ownership import OwnedLane
from appliance.errors import ApplianceError, BrokerBusy
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.records.records import Record
from appliance.link.client.writer import Begins
from appliance.link.model.checkpoint import Gap
from appliance.link.model.checkpoint_records import (
    encode_gap,
    encode_owner,
    encode_position,
    encode_sql,
    encode_tombstone,
)
from appliance.link.model.link_sql import SqlChange, restatement
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_records import SegmentKey, encode_dropped, encode_segment
from appliance.link.model.position import ANYBODY, CopyEnd, Position
from appliance.link.model.replicas import Replica

log = logging.getLogger("appliance.replicator")

_SEGMENTS_A_COMMIT = 64
"""Most segments written in one transaction of their own."""

_SEGMENTS_PAUSE, _SEGMENTS_PAUSE_MAX = 5.0, 300.0
"""Pause of map segments after a failed transaction with some, in seconds; it doubles each time."""


@dataclass(eq=False)
class Lane(OwnedLane):
    """An owned lane with its positions, its copies' leaders and ends, and its maps of offsets."""

    offsets: Partition = field(init=False)
    """The lane's partition of the topic of the maps of offsets."""
    _maps: MapGrowth = field(init=False, default_factory=MapGrowth)
    _segments_pause: float = field(init=False, default=0.0)
    _segments_after: float = field(init=False, default=0.0)
    _reported: set[Partition] = field(init=False, default_factory=set)
    """The copies of which another writer is logged."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.offsets = Partition(self.naming.offsets_topic, self.index)

    async def start(self) -> None:
        """Start as an owned lane does; the maps grow from what is committed."""
        self._maps = MapGrowth()
        await super().start()

    def is_led_as(self, copy: Partition, metadata: Metadata) -> bool:
        """True when a copy's topic and leader are those in these metadata."""
        now, then = self.writer.metadata, metadata.topics.get(copy[0])
        same = then is not None and copy[0] in now.topics and now.topics[copy[0]].id == then.id
        return same and now.leader_epoch(*copy) == metadata.leader_epoch(*copy)

    def knows_end(self, copy: Partition) -> bool:
        """True when the offset of a copy's next batch is known."""
        return self._writer is not None and copy in self._writer.ends

    def expect_ends(self, ends: Mapping[Partition, int], metadata: Metadata) -> None:
        """Set the ends of copies that the lane writes from now on, found by these metadata (invariant J)."""
        self.writer.ends |= ends
        self.writer.epochs |= {copy: metadata.leader_epoch(*copy) for copy in ends}

    async def forget(self, partitions: Collection[Partition], segments: Collection[SegmentKey]) -> None:
        """Forget these positions and map segments; leaves the owner's name, in the same transaction."""
        now = now_ms()
        records = [encode_tombstone(partition, now) for partition in partitions]
        records.append(encode_owner(self.index, self.owner, now))
        dropped = [encode_dropped(key, now) for key in segments]
        await self.write((), lambda *_: {self.positions: records} | ({self.offsets: dropped} if dropped else {}))

    @property
    def keeps_offsets(self) -> bool:
        """True when the lane's partition of the maps of offsets exists, and took the last segments."""
        return self.writer.metadata.leader(*self.offsets) >= 0 and loop_seconds() >= self._segments_after

    @property
    def can_cut_maps(self) -> bool:
        """True when a segment can be written that ends the map before it, or when there are no segments."""
        return self.keeps_offsets or self.offsets[0] not in self.writer.metadata.topics

    @property
    def growing_segments(self) -> set[SegmentKey]:
        """The segments that the next transactions may write again, grown."""
        return self._maps.growing

    async def remember_segments(self, segments: Sequence[tuple[Partition, Segment]]) -> None:
        """Write segments of the maps of the lane's partitions, in transactions of their own."""
        for at in range(0, len(segments), _SEGMENTS_A_COMMIT):
            some = segments[at : at + _SEGMENTS_A_COMMIT]
            await self._write_segments([encode_segment(partition, segment, now_ms()) for partition, segment in some])

    async def drop_segments(self, keys: Collection[SegmentKey]) -> None:
        """Drop segments of the maps, in one transaction."""
        await self._write_segments([encode_dropped(key, now_ms()) for key in keys])

    async def _write_segments(self, records: Sequence[Record]) -> None:
        try:
            await self.write((), lambda *_: {self.offsets: records})
        except ApplianceError:
            self._pause_segments()
            raise

    def _pause_segments(self) -> None:
        """Copy without segments for a while: an unwritable topic of the maps must not block a lane."""
        self._segments_pause = min(max(2 * self._segments_pause, _SEGMENTS_PAUSE), _SEGMENTS_PAUSE_MAX)
        self._segments_after = loop_seconds() + self._segments_pause

    async def replace(
        self, positions: Mapping[Replica, Position], gaps: Sequence[Gap], cut: Collection[Replica]
    ) -> None:
        """Write positions that the operator has chosen, as ``commit`` does.

        Raises:
            BrokerBusy: maps are to be cut, and cannot be now.
        """
        if cut and not self.can_cut_maps:
            raise BrokerBusy("the topic of the maps of offsets cannot be written now", "LEADER_NOT_AVAILABLE")
        await self.commit([], positions, gaps, cut)

    async def commit(
        self,
        chunks: Sequence[Chunk],
        base: Mapping[Replica, Position],
        gaps: Sequence[Gap] = (),
        cut: Collection[Replica] = (),
    ) -> None:
        """Write the chunks, and the positions past them, in one transaction (invariant A).

        ``base`` holds positions that first replace the remembered ones: of replicas without one, of stopping ones, or
        of those that leave a gap, which ``gaps`` records in the same transaction (invariant F). Of ``cut``
        partitions no older part of the map holds, if ``can_cut_maps``.
        The first transaction after a start leaves the owner's name; later, an empty one is skipped. It raises as
        ``write`` does.
        """
        taken, committed = by_partition(chunks), self.checkpoint.positions
        before = {each: base[each] if each in base else committed[each.source] for each in {*base, *taken}}
        after = {replica: advanced(position, taken.get(replica, ())) for replica, position in before.items()}
        now, grown, sql = now_ms(), MapUpdate(after), self._restated_sql(base)
        records = self._further_records(gaps, sql, now)
        if not records and not after:
            return

        def own_records(ends: Mapping[Partition, int], begins: Begins) -> dict[Partition, list[Record]]:
            nonlocal grown
            ended = self._with_ends(before, after, taken, ends, begins)
            grown = self._maps.grow(committed, ended, self.keeps_offsets, cut)
            return self._records(grown, records, now)

        try:
            await self.write(rounds(taken), own_records)
        except ApplianceError:
            if grown.segments:
                self._pause_segments()
            raise
        self._note_maps(grown)
        self.named = True
        committed.update({replica.source: position for replica, position in grown.positions.items()})
        for gap in gaps:
            self.checkpoint.add(gap)
        for change in sql:
            self.checkpoint.add(change)

    def _restated_sql(self, base: Mapping[Replica, Position]) -> list[SqlChange]:
        """The newest change of the SQL, if some of these positions begin or go back: it holds from there on."""
        if not base:
            return []
        after = {replica.source: position for replica, position in base.items()}
        change = restatement(self.checkpoint.sql.values(), self.checkpoint.positions, after)
        return [change] if change else []

    def _further_records(self, gaps: Sequence[Gap], sql: Sequence[SqlChange], now: int) -> list[Record]:
        """The records of a transaction that are no positions."""
        records = [encode_gap(gap, now) for gap in gaps]
        records += [] if self.named else [encode_owner(self.index, self.owner, now)]
        return records + [encode_sql(change, now) for change in sql]

    def _records(self, grown: MapUpdate, further: list[Record], now: int) -> dict[Partition, list[Record]]:
        """All records of a transaction, by their partition."""
        positions = [encode_position(each.source, position, now) for each, position in grown.positions.items()]
        segments = [encode_segment(partition, segment, now) for partition, segment in grown.segments]
        return {self.positions: positions + further} | ({self.offsets: segments} if segments else {})

    def _note_maps(self, grown: MapUpdate) -> None:
        """Note that the maps' growth is committed."""
        for partition, error in grown.damaged.items():
            fields = {"partition": str(partition), "error": error}
            log.warning("map of offsets damaged; it begins anew", extra={"fields": fields})
        self._segments_pause = 0.0 if grown.segments else self._segments_pause
        self._maps.note_commit(grown)

    def _with_ends(
        self,
        before: Mapping[Replica, Position],
        after: Mapping[Replica, Position],
        taken: Mapping[Replica, Sequence[Chunk]],
        ends: Mapping[Partition, int],
        begins: Begins,
    ) -> dict[Replica, Position]:
        """The positions, with the new ends of written copies, and the maps of the copied records."""
        writer, ended = self.writer, dict(after)
        for replica, chunks in taken.items():
            copy, position = replica.copy, after[replica]
            if copy in ends:
                end = CopyEnd(
                    ends[copy], writer.metadata.leader_epoch(*copy), writer.producer.id, writer.producer.epoch
                )
                self._require_own(replica, before[replica], foreign_offsets(chunks, writer.ends[copy], end.offset))
                tail = copied_tail(before[replica], chunks, writer.ends[copy], end.offset, begins.get(copy, ()))
                ended[replica] = position.written(end, tail)
            else:
                ended[replica] = replace(position, tail=read_tail(before[replica], position.next_offset))
        return ended

    def _require_own(self, replica: Replica, before: Position, foreign: int) -> None:
        """Check that nobody has written to a copy since a failback ended there; report other foreign writers.

        Raises:
            BrokerBusy: somebody has; the lane restarts, and checks the foreign records.
        """
        if self.naming.sharing.others_write or not foreign or replica.copy in self._reported:
            return
        name = str(replica.copy)
        if before.copy_end is not None and before.copy_end.producer_id == ANYBODY:
            raise BrokerBusy(f"{name} ends elsewhere than it did when it was looked at", "CONCURRENT_TRANSACTIONS")
        self._reported.add(replica.copy)
        fields = {"partition": name, "from": self.writer.ends[replica.copy], "offsets": foreign}
        log.warning("somebody else writes to a copy; no failback brings that back", extra={"fields": fields})
