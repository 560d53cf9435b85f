"""A lane: one transactional id, one partition of the positions topic, and the copies of its source partitions.

Who may write what (invariant B): lane i writes partition i of the positions topic and the destination partitions of
the source partitions that the link's layout gives it; nobody else does, and of several processes with lane i only the
one with the newest epoch. A lane that was fenced because the layout changes finds that in its checkpoint. There are no
clever retries: after any doubtful answer the lane restarts with a new epoch, which aborts open transactions, fences
delayed writes, and then reads the committed state.
"""

import asyncio
import itertools
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from appliance.clock import loop_seconds, now_ms
from appliance.engine.model.chunk import Chunk, advanced, by_partition, rounds
from appliance.engine.model.map_growth import Grown, KnownSegments, MapGrowth, copied_tail, read_tail, strange
from appliance.errors import ApplianceError, BrokerBusy, Fenced, LayoutChanged, PartitionsUnavailable, Superseded
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.transactions import Producer, init_producer_id
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition
from appliance.kafka.records.records import Record
from appliance.link.client.checkpoint_log import peek_checkpoint, read_checkpoint
from appliance.link.client.origins import NAMES, Origins
from appliance.link.client.retry import is_loading, retry_while_busy
from appliance.link.client.writer import Begins, Remember, Round, Writer
from appliance.link.model.checkpoint import OPERATOR, Gap, LaneCheckpoint, Mark, Owner
from appliance.link.model.checkpoint_records import (
    encode_forgotten,
    encode_gap,
    encode_mark,
    encode_owner,
    encode_position,
    encode_sql,
)
from appliance.link.model.link_sql import LinkSql, SqlChange, newest_change, restated
from appliance.link.model.naming import PRODUCERS, Naming
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_records import SegmentKey, encode_dropped, encode_segment
from appliance.link.model.position import ANYBODY, CopyEnd, Position
from appliance.link.model.producers import encode_producer
from appliance.link.model.replicas import Replica
from appliance.link.model.states import LANE, LaneEvent, LaneState, StateMachine
from appliance.link.model.topic_configs import NAMES_IN_SYNC

log = logging.getLogger("appliance.replicator")

_SEGMENTS_A_COMMIT, _DROPPED_A_COMMIT = 64, 500
"""Number of segments written, and dropped, in one transaction."""


_NAME_PATIENCE = 3.0
_NAME_PAUSE = 0.1

_SEGMENTS_PAUSE, _SEGMENTS_PAUSE_MAX = 5.0, 300.0
"""Pause of map segments after a failed transaction with some, in seconds; it doubles each time."""


class Lane:
    """One lane in one process; the module says what it owns.

    ``layout`` is the number of the layout that it belongs to; with None it only fences and reads. ``names`` are those
    that lanes leave at the destination, one value for all lanes of a process; without it the lane copies nothing.
    """

    def __init__(
        self,
        index: int,
        destination: Cluster,
        naming: Naming,
        owner: Owner,
        transaction_timeout: float,
        layout: int | None = 0,
        names: Origins | None = None,
    ) -> None:
        self.index = index
        self.nameless: ApplianceError | None = None
        """The reason that it copies without having left its name."""
        self._names = names
        self._layout = layout
        self.checkpoint = LaneCheckpoint()
        self._seen = LaneCheckpoint()
        self._cluster = destination
        self._positions = Partition(naming.positions_topic, index)
        self.offsets = Partition(naming.offsets_topic, index)
        """The lane's partition of the topic of the maps of offsets."""
        self._maps = MapGrowth()
        self._segments_pause = 0.0
        self._segments_after = 0.0
        self.shares_copies = naming.sharing.others_write
        """True when others may write to the lane's copies."""
        self._naming = naming
        self._transactional_id = naming.transactional_id(index)
        self._owner = owner
        self._timeout = transaction_timeout
        self._machine = StateMachine(LANE, LaneState.COLD)
        self._writer: Writer | None = None
        self._named = False
        self._outdated: Fenced | None = None
        self._strange: set[Partition] = set()

    @property
    def state(self) -> LaneState:
        """The lane's state."""
        return self._machine.state

    @property
    def in_transaction(self) -> bool:
        """True when a transaction is open: a cancel now would leave it open until somebody aborts it."""
        return self._writer is not None and self._writer.in_transaction

    async def start(self) -> None:
        """Fence the predecessor, leave our name, then read the checkpoint (invariant C).

        An operator's name comes with the changed positions: a replicator that sees it takes the lane back.

        Raises:
            Fenced: a newer owner has the lane.
            LayoutChanged: the lane is of another layout; it is over for us.
            PartitionStopped, BrokerBusy, BrokerRefused, Unreachable: the lane is cold again.
        """
        self._machine.on(LaneEvent.START)
        try:
            producer = await retry_while_busy(self._take_id, is_loading)
            self._machine.on(LaneEvent.EPOCH_GRANTED)
            self.checkpoint = await self._read_checkpoint(producer)
            self._require_layout()
            self._seen = LaneCheckpoint(owner=self.checkpoint.owner, read_to=self.checkpoint.read_to)
            self._machine.on(LaneEvent.POSITIONS_READ)
        except BaseException as error:
            self._fall(error)
            raise

    def _require_layout(self) -> None:
        """Check that the lane is still of our layout: its predecessor is fenced, so that this cannot change unseen."""
        if self._layout is not None and not self.checkpoint.allows(self._layout):
            record = self.checkpoint.layout
            now = "being changed" if record and record.changing else "changed"
            raise LayoutChanged(f"lane {self.index}: the lanes of {self._naming.replicator} are {now}: run this again")

    async def agree_on_sql(self, sql: LinkSql) -> None:
        """Write the run's SQL down, from the started lane's positions on, unless that is done.

        Raises:
            Fenced: a newer run has written another down: the lane is over for us.
            Unreachable, BrokerBusy, BrokerRefused: the lane is cold again.
        """
        newest, owner, now = newest_change(self.checkpoint.sql.values()), self._owner, now_ms()
        held = newest.sql if newest else LinkSql()
        # An earlier change to the same SQL does not count: partitions have come from lanes that saw others since.
        if held.is_that_of(sql) and held.number >= sql.number:
            return
        offsets = {partition: position.next_offset for partition, position in self.checkpoint.positions.items()}
        change = SqlChange(sql, owner.run, owner.generation, now, offsets)
        if newest is not None and newest.order > change.order:
            self._outdated = Fenced(f"lane {self.index} by run {newest.run}, which has changed the link's SQL")
            self._fall(self._outdated)
            raise self._outdated
        await self.remember([encode_sql(change, now)])
        self.checkpoint.add(change)

    async def check_owner(self) -> None:
        """Check for another owner of the lane before our next transaction does.

        Raises:
            Fenced: there is one.
            Unreachable, BrokerBusy, BrokerRefused: the check failed.
        """
        if await self._find_owner() != self._owner:
            fenced = Fenced(self._transactional_id)
            self._fall(fenced)
            raise fenced

    async def taken_by(self) -> ApplianceError | None:
        """The new owner of the lane after ``Fenced``, as an error to show.

        None when there is none: the coordinator gave up our transaction, the operator changed a position, or an older
        replicator was late; the lane is cold again. A new owner leaves its name as soon as it has read the checkpoint.
        Two replicators that start at once take some lanes each, and must agree on which of them stops.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused: the owner is unknown; the lane stays fenced.
        """
        if self._outdated:
            return self._outdated
        deadline = loop_seconds() + _NAME_PATIENCE
        while loop_seconds() < deadline:
            owner = await self._find_owner()
            if owner is not None and owner.run == OPERATOR:
                break
            if owner is not None and owner != self._owner:
                if owner.run == self._owner.run:
                    return Superseded(f"lane {self.index} was taken by another task of this replicator")
                if self._owner.is_newer_than(owner):
                    break
                return Fenced(f"lane {self.index} by {owner}")
            await asyncio.sleep(_NAME_PAUSE)
        self._machine.on(LaneEvent.NOBODY_ELSE)
        return None

    def begin_anew(self) -> None:
        """Make the lane cold after a change that only a new start can judge."""
        self._writer = None
        self._machine.on(LaneEvent.DOUBT)

    @property
    def producer(self) -> Producer:
        """The epoch in which the started lane writes."""
        assert self._writer is not None
        return self._writer.producer

    async def learn(self, copies: Collection[str]) -> Metadata:
        """Look up the leaders of topics before the started lane writes to them; the metadata of all of its topics.

        The checkpoint need not be read again: nobody else writes it as long as this lane's epoch is the newest
        (invariant B).

        Raises:
            Unreachable, BrokerRefused: nothing has changed.
        """
        assert self._writer is not None
        self._writer.learn(await self._cluster.metadata(list(copies)))
        return self._writer.metadata

    def knows_leader(self, partition: Partition) -> bool:
        """True when the started lane knows the leader of a partition of the destination."""
        assert self._writer is not None
        return self._writer.metadata.leader(*partition) != NOBODY

    def is_led_as(self, copy: Partition, metadata: Metadata) -> bool:
        """True when a copy's topic and leader are those in these metadata."""
        assert self._writer is not None
        now, then = self._writer.metadata, metadata.topics.get(copy[0])
        same = then is not None and copy[0] in now.topics and now.topics[copy[0]].id == then.id
        return same and now.leader_epoch(*copy) == metadata.leader_epoch(*copy)

    def knows_end(self, copy: Partition) -> bool:
        """True when the offset of a copy's next batch is known."""
        return self._writer is not None and copy in self._writer.ends

    def expect_ends(self, ends: Mapping[Partition, int], metadata: Metadata) -> None:
        """Set the ends of copies that the lane writes from now on, found by these metadata (invariant J)."""
        assert self._writer is not None
        self._writer.ends |= ends
        self._writer.epochs |= {copy: metadata.leader_epoch(*copy) for copy in ends}

    def has_moved(self, metadata: Metadata) -> bool:
        """True when a copy's leader has changed since its end was checked."""
        assert self._writer is not None
        return any(0 <= epoch < metadata.leader_epoch(*copy) for copy, epoch in self._writer.epochs.items())

    async def remember(self, records: Sequence[Record]) -> None:
        """Write records other than positions and gaps into the lane's partition, in their own transaction.

        Raises:
            Fenced: as ``commit``.
        """
        await self._write((), lambda *_: {self._positions: records})

    async def forget(self, partitions: Collection[Partition], segments: Collection[SegmentKey]) -> None:
        """Forget these positions and map segments; leaves the owner's name, in the same transaction.

        Raises:
            Fenced: as ``commit``.
        """
        now = now_ms()
        records = [encode_forgotten(partition, now) for partition in partitions]
        records.append(encode_owner(self.index, self._owner, now))
        dropped = [encode_dropped(key, now) for key in segments]
        await self._write((), lambda *_: {self._positions: records} | ({self.offsets: dropped} if dropped else {}))

    async def remember_segments(self, segments: Sequence[tuple[Partition, Segment]]) -> None:
        """Write segments of the maps of the lane's partitions, in transactions of their own.

        Raises:
            Fenced: as ``commit``.
        """
        for at in range(0, len(segments), _SEGMENTS_A_COMMIT):
            some = segments[at : at + _SEGMENTS_A_COMMIT]
            records = [encode_segment(partition, segment, now_ms()) for partition, segment in some]
            await self._write((), lambda *_, records=records: {self.offsets: records})

    @property
    def keeps_offsets(self) -> bool:
        """True when the lane's partition of the maps of offsets exists, and took the last segments."""
        assert self._writer is not None
        return self._writer.metadata.leader(*self.offsets) >= 0 and loop_seconds() >= self._segments_after

    @property
    def can_cut_maps(self) -> bool:
        """True when a segment can be written that ends the map before it, or when there are no segments."""
        assert self._writer is not None
        return self.keeps_offsets or self.offsets[0] not in self._writer.metadata.topics

    async def replace(
        self, positions: Mapping[Replica, Position], gaps: Sequence[Gap], cut: Collection[Replica]
    ) -> None:
        """Write positions that the operator has chosen, as ``commit`` does.

        Raises:
            BrokerBusy, Fenced, Unreachable, BrokerRefused: as ``commit``; also if maps are to be cut and cannot be now.
        """
        if cut and not self.can_cut_maps:
            raise BrokerBusy("the topic of the maps of offsets cannot be written now", "LEADER_NOT_AVAILABLE")
        await self.commit([], positions, gaps, cut)

    async def drop_segments(self, known: KnownSegments, starts: Mapping[Partition, int]) -> int:
        """Drop segments below the starts of the copies, as many as fit one transaction; their number.

        Raises:
            Fenced: as ``commit``.
        """
        if not self.keeps_offsets:
            return 0
        keys = list(itertools.islice(known.below(starts, self._maps.growing), _DROPPED_A_COMMIT))
        records = [encode_dropped(key, now_ms()) for key in keys]
        try:
            if records:
                await self._write((), lambda *_: {self.offsets: records})
        except ApplianceError:
            self._do_without_segments()
            raise
        return len(keys)

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
        The first transaction after a start leaves the owner's name; later, an empty one is skipped.

        Raises:
            Fenced: somebody newer has the lane, which is over for us.
            Unreachable, BrokerBusy, BrokerRefused: the outcome is unknown; the lane is cold again.
        """
        taken = by_partition(chunks)
        before = {
            replica: base[replica] if replica in base else self.checkpoint.positions[replica.source]
            for replica in {*base, *taken}
        }
        advance = {replica: advanced(held, taken.get(replica, ())) for replica, held in before.items()}
        grown = Grown(advance)
        now = now_ms()
        records = [encode_gap(gap, now) for gap in gaps]
        records += [] if self._named else [encode_owner(self.index, self._owner, now)]
        sql = self._sql_restated(base) if base else None
        records += [encode_sql(sql, now)] if sql else []
        if not records and not advance:
            return

        def remembered(ends: Mapping[Partition, int], begins: Begins) -> dict[Partition, list[Record]]:
            nonlocal grown
            ended = self._with_ends(before, advance, taken, ends, begins)
            grown = self._maps.grown(self.checkpoint.positions, ended, self.keeps_offsets, cut)
            positions = [encode_position(replica.source, held, now) for replica, held in grown.positions.items()]
            segments = [encode_segment(partition, segment, now) for partition, segment in grown.segments]
            return {self._positions: positions + records} | ({self.offsets: segments} if segments else {})

        try:
            await self._write(rounds(taken), remembered)
        except ApplianceError:
            if grown.segments:
                self._do_without_segments()
            raise
        for partition, error in grown.damaged.items():
            fields = {"partition": str(partition), "error": error}
            log.warning("map of offsets damaged; it begins anew", extra={"fields": fields})
        self._segments_pause = 0.0 if grown.segments else self._segments_pause
        self._named = True
        self._maps.committed(grown)
        self.checkpoint.positions.update({replica.source: held for replica, held in grown.positions.items()})
        for gap in gaps:
            self.checkpoint.add(gap)
        if sql:
            self.checkpoint.add(sql)

    def _sql_restated(self, base: Mapping[Replica, Position]) -> SqlChange | None:
        """The newest change of the SQL, if some of these positions begin or go back: it holds from there on."""
        after = {replica.source: held for replica, held in base.items()}
        return restated(self.checkpoint.sql.values(), self.checkpoint.positions, after)

    async def _write(self, copies: Sequence[Round], remember: Remember) -> None:
        assert self._writer is not None
        try:
            await self._writer.write(copies, remember)
        except BaseException as error:
            self._fall(error)
            raise

    async def _find_owner(self) -> Owner | None:
        """The committed owner of the lane."""
        await peek_checkpoint(self._cluster, *self._positions, self._seen)
        return self._seen.owner

    def _do_without_segments(self) -> None:
        """Copy without segments for a while: an unwritable topic of the maps must not block a lane."""
        self._segments_pause = min(max(2 * self._segments_pause, _SEGMENTS_PAUSE), _SEGMENTS_PAUSE_MAX)
        self._segments_after = loop_seconds() + self._segments_pause

    def _with_ends(
        self,
        before: Mapping[Replica, Position],
        after: Mapping[Replica, Position],
        taken: Mapping[Replica, Sequence[Chunk]],
        ends: Mapping[Partition, int],
        begins: Begins,
    ) -> dict[Replica, Position]:
        """The positions, with the new ends of written copies, and the maps of the copied records."""
        assert self._writer is not None
        producer, metadata = self._writer.producer, self._writer.metadata
        ended = dict(after)
        for replica, chunks in taken.items():
            copy, held = replica.copy, after[replica]
            if copy in ends:
                epoch = metadata.leader_epoch(*copy)
                end = CopyEnd(ends[copy], epoch, producer.id, producer.epoch)
                self._require_own(replica, before[replica], chunks, end.offset)
                tail = copied_tail(before[replica], chunks, self._writer.ends[copy], end.offset, begins.get(copy, ()))
                ended[replica] = held.written(end, tail)
            else:
                ended[replica] = replace(held, tail=read_tail(before[replica], held.next_offset))
        return ended

    def _require_own(self, replica: Replica, before: Position, chunks: Sequence[Chunk], end: int) -> None:
        """Check that nobody has written to a copy since a failback ended there; report other foreign writers.

        Raises:
            BrokerBusy: somebody has; the lane restarts, and checks the foreign records.
        """
        assert self._writer is not None
        begin = self._writer.ends[replica.copy]
        others = strange(chunks, begin, end)
        if self.shares_copies or not others or replica.copy in self._strange:
            return
        name = str(replica.copy)
        if before.copy_end is not None and before.copy_end.producer_id == ANYBODY:
            raise BrokerBusy(f"{name} ends elsewhere than it did when it was looked at", "CONCURRENT_TRANSACTIONS")
        self._strange.add(replica.copy)
        fields = {"partition": name, "from": begin, "offsets": others}
        log.warning("somebody else writes to a copy; no failback brings that back", extra={"fields": fields})

    async def _read_checkpoint(self, producer: Producer) -> LaneCheckpoint:
        """Commit a mark, and read up to it: this finds everything that was committed before.

        The lane leaves its name as a producer in the same transaction, and so before its first copy.
        """
        topic, _ = self._positions
        metadata = await self._cluster.metadata([topic, self.offsets[0], PRODUCERS])
        self._maps = MapGrowth()
        shared, keeps_times = self.shares_copies, self.shares_copies or self._naming.keeps_times
        self._writer = Writer(self._cluster, producer, self._positions, metadata, self._timeout, shared, keeps_times)
        mark, now = Mark(self.index, producer.id, producer.epoch), now_ms()
        self._named = self._owner.run != OPERATOR
        name = [encode_owner(self.index, self._owner, now)] if self._named else []
        remembered: dict[Partition, Sequence[Record]] = {self._positions: [encode_mark(mark, now), *name]}
        if found := await self._producer_name(metadata, producer):
            remembered[NAMES] = [found]
        try:
            await self._writer.write((), lambda *_: remembered)
        except PartitionsUnavailable as error:  # nothing was added to the transaction
            if self.shares_copies or error.reasons.keys() != {NAMES}:
                raise
            del remembered[NAMES]
            self.nameless = _nameless(error)
            await self._writer.write((), lambda *_: remembered)
        checkpoint = LaneCheckpoint()
        await read_checkpoint(self._cluster, topic, mark, checkpoint)
        return checkpoint

    async def _producer_name(self, metadata: Metadata, producer: Producer) -> Record | None:
        """The name to leave; None of a lane that copies nothing, or that keeps to itself and may not leave one."""
        self.nameless = None
        if self._names is None or (PRODUCERS not in metadata.topics and not self.shares_copies):
            return None
        try:
            await self._names.refresh()
            if metadata.leader(PRODUCERS, 0) == NOBODY:
                raise BrokerBusy(f"{PRODUCERS} of the {self._cluster.side} has no leader now", "LEADER_NOT_AVAILABLE")
            if not self.shares_copies and metadata.topics[PRODUCERS].lacks_replicas(0, NAMES_IN_SYNC):
                # A transaction that has touched it could not end, not even by an abort, and the lane would wait.
                raise BrokerBusy(f"{PRODUCERS} has too few replicas in sync now", "NOT_ENOUGH_REPLICAS")
        except ApplianceError as error:
            if self.shares_copies:
                raise
            self.nameless = _nameless(error)
            return None
        before = self._names.producers.lanes.get(producer.id)
        return encode_producer(metadata.cluster_id, producer, self._naming, now_ms(), before)

    async def _take_id(self) -> Producer:
        # An error answer to a question means no change: it may be repeated, with another broker.
        self._cluster.forget_coordinator(self._transactional_id)
        coordinator = await self._cluster.coordinator(self._transactional_id)
        return await init_producer_id(coordinator, self._transactional_id, self._timeout)

    def _fall(self, error: BaseException) -> None:
        self._writer = None
        self._cluster.forget_coordinator(self._transactional_id)
        self._machine.on(LaneEvent.FENCED if isinstance(error, Fenced | LayoutChanged) else LaneEvent.DOUBT)


def _nameless(error: ApplianceError) -> ApplianceError:
    text = f"lanes copy without leaving their names in {PRODUCERS}, for links of identical names from there: {error}"
    return ApplianceError(text)
