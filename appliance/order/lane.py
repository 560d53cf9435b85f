"""The only writer of an order in its cluster: T-global, the hidden log, and what is remembered, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.clock import now_ms
from appliance.engine.model.chunk import by_turn
from appliance.engine.model.map_growth import MapGrowth, MapUpdate
from appliance.engine.write.copies import NEVER_WRITTEN, CopyExaminer, SearchEnds
from appliance.engine.write.ownership import OwnedLane
from appliance.errors import ApplianceError, BrokerBusy, PartitionStopped
from appliance.kafka.client.configs import WriteLimits
from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.records import Record
from appliance.link.client.offset_maps import segment_records
from appliance.link.client.writer import Begins
from appliance.link.model.checkpoint_records import encode_gap, encode_owner, encode_position, encode_tombstone
from appliance.link.model.offset_records import encode_dropped, encode_segment
from appliance.link.model.order import OrderRecord, Promise
from appliance.link.model.order_records import encode_order, encode_promise, encode_sequence_mark
from appliance.link.model.position import ANYBODY, CopyEnd, Position
from appliance.link.model.replicas import Replica
from appliance.order.model.changes import Change, positions_after, positions_at
from appliance.order.model.rebuilding import REBUILD
from appliance.order.names import hidden_topic


@dataclass(eq=False)
class OrderLane(OwnedLane):
    """An owned lane of an order; the partitions of T that hash to it are its own in its cluster (invariant B)."""

    offsets: Partition = field(init=False)
    """The lane's partition of the topic of the maps of offsets."""
    _maps: MapGrowth = field(init=False, default_factory=MapGrowth)
    _search_ends: SearchEnds = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.offsets = Partition(self.naming.offsets_topic, self.index)

    async def start(self) -> None:
        """Start as an owned lane does; the maps grow from what is committed."""
        self._maps = MapGrowth()
        await super().start()

    @property
    def promise(self) -> Promise | None:
        """The newest promise."""
        return self.checkpoint.promise

    def record(self, partition: Partition) -> OrderRecord:
        """The cluster's part in the order of a partition of T."""
        return self.checkpoint.orders.get(partition, OrderRecord())

    def logs_of(self, partition: Partition) -> tuple[Partition, Partition]:
        """T-global's partition and that of the hidden log."""
        topic, number = partition
        return Partition(self.naming.destination(topic), number), Partition(hidden_topic(topic), number)

    async def check_logs(
        self, partitions: Sequence[Partition], limits: Mapping[str, WriteLimits]
    ) -> Mapping[Partition, ApplianceError]:
        """Check that both logs of each partition hold what was written to them, and no more (invariants H and J).

        ``limits`` are those of their topics. Returns the errors of the partitions that must not be written.
        """
        ends: dict[Partition, CopyEnd] = {}
        for partition in partitions:
            record, (shown, hidden) = self.record(partition), self.logs_of(partition)
            ends |= {shown: record.end or NEVER_WRITTEN, hidden: record.hidden_end or NEVER_WRITTEN}
        metadata, own = await self.learn({self.offsets.topic, *(topic for topic, _ in ends)}), self.producer.id
        examiner = CopyExaminer(
            self.cluster, metadata, own, self._search_ends, former_ids=frozenset({ANYBODY}), remedy=REBUILD
        )
        checked = await examiner.examine(ends)
        self.writer.ends |= checked.ends
        self.writer.epochs |= {log: metadata.leader_epoch(*log) for log in checked.ends}
        refused: dict[Partition, ApplianceError] = {}
        for partition in partitions:
            record, logs = self.record(partition), self.logs_of(partition)
            for log, before in zip(logs, (record.global_id, record.hidden_id), strict=True):
                error = checked.refused.get(log)
                if (topic := metadata.topics.get(log.topic)) is None:
                    error = BrokerBusy(f"{log} is not there now", "UNKNOWN_TOPIC_OR_PARTITION")
                elif is_another(before, topic.id):
                    error = PartitionStopped(f"{log} was deleted and made anew: {REBUILD}")
                elif limits[log.topic].is_compacted:
                    error = PartitionStopped(
                        f"{log.topic} is compacted and would lose records: set cleanup.policy=delete"
                    )
                if error is not None:
                    refused.setdefault(partition, error)
        return refused

    async def commit(self, changes: Sequence[Change], promise: Promise | None = None) -> None:
        """Write the changes in one transaction (invariant A), with a promise, if there is a new one; as ``write``.

        Raises:
            BrokerBusy: the maps of offsets cannot be written now, and nothing is without them.
        """
        if self.writer.metadata.leader(*self.offsets) < 0:
            await self.learn([self.offsets.topic])
        if self.writer.metadata.leader(*self.offsets) < 0:
            raise BrokerBusy(f"{self.offsets} has no leader now", "LEADER_NOT_AVAILABLE")
        now, grown = now_ms(), MapUpdate({})
        orders: dict[Partition, OrderRecord] = {}

        def own_records(ends: Mapping[Partition, int], begins: Begins) -> dict[Partition, list[Record]]:
            nonlocal grown
            if begins:  # the lane starts again, and finds whose records they are
                raise BrokerBusy("somebody else writes to a log of the order", "CONCURRENT_TRANSACTIONS")
            after, cut = dict[Replica, Position](), set[Replica]()
            for change in changes:
                orders[change.partition] = record = self._with_ends(change, ends)
                if change.shown and record.end is not None:
                    begin = self._begin(self.logs_of(change.partition)[0])
                    placed = replace(change, record=record)
                    after.update(positions_after(placed, self.checkpoint.positions, begin, record.end))
                begun = positions_at(replace(change, record=record), self.checkpoint.positions)
                after.update(begun)
                cut.update(begun)
            grown = self._maps.grow(self.checkpoint.positions, after, keeps_segments=True, cut=cut)
            gaps = [encode_gap(gap, now) for change in changes for gap in change.gaps]
            return self._records(orders, grown, promise, gaps, now)

        await self.write(self._rounds(changes, now), own_records)
        self._maps.note_commit(grown)
        self.checkpoint.orders.update(orders)
        for gap in [gap for change in changes for gap in change.gaps]:
            self.checkpoint.add(gap)
        self.checkpoint.positions.update({replica.source: position for replica, position in grown.positions.items()})
        if promise is not None:
            self.checkpoint.promise = promise

    async def begin_again(self, orders: Mapping[Partition, OrderRecord], promise: Promise, now: int) -> None:
        """Replace the part in the order of these partitions of T, and forget the places and maps of their origins.

        Leaves the owner's name, in the same transaction.
        """
        topics = {topic for topic, _ in orders}
        gone = [each for each in self.checkpoint.positions if each.topic.rpartition(":")[2] in topics]
        segments = await segment_records(self.cluster, self.offsets)
        records = [encode_owner(self.index, self.owner, now), encode_promise(self.index, promise, now)]
        records += [encode_order(partition, record, now) for partition, record in orders.items()]
        records += [encode_tombstone(each, now) for each in gone]
        dropped = [encode_dropped(key, now) for key in segments if key[0][0].rpartition(":")[2] in topics]
        await self.write((), lambda *_: {self.positions: records} | ({self.offsets: dropped} if dropped else {}))

    def _rounds(self, changes: Sequence[Change], now: int) -> list[list[tuple[Partition, Outgoing]]]:
        """The batches as Produce requests; in each hidden log the mark comes last."""
        queues = []
        for change in changes:
            shown, hidden = self.logs_of(change.partition)
            queues.append([(shown, batch) for each in change.shown for batch in each.batches])
            taken = [(*each.batches, encode_sequence_mark(each.mark, now)) for each in change.taken]
            queues.append([(hidden, batch) for batches in taken for batch in batches])
        return by_turn(queues)

    def _with_ends(self, change: Change, ends: Mapping[Partition, int]) -> OrderRecord:
        """The record, with the ends of what was written; a hidden log that begins does so where it ended."""
        (shown, log), topics = self.logs_of(change.partition), self.writer.metadata.topics
        record = change.record
        if shown in ends:
            record = replace(record, end=self._end(shown, ends))
        if change.begins:
            record = replace(record, first=self._begin(shown))
        if shown in ends or change.begins:
            record = replace(record, global_id=topics[shown.topic].id)
        hidden = record.hidden
        if log in ends and hidden is not None:
            first = hidden.first if hidden.first >= 0 else self._begin(log)
            hidden = replace(hidden, first=first, end=self._end(log, ends))
            record = replace(record, hidden_id=topics[log.topic].id, hidden=hidden)
            if record.following < 0:
                record = replace(record, following=first)
        return record

    def _begin(self, log: Partition) -> int:
        """The offset of a log's next batch; unknown of a log that was recreated since its check."""
        if log not in self.writer.ends:
            raise BrokerBusy(f"{log} was deleted and made anew", "UNKNOWN_TOPIC_ID")
        return self.writer.ends[log]

    def _end(self, log: Partition, ends: Mapping[Partition, int]) -> CopyEnd:
        producer = self.producer
        return CopyEnd(ends[log], self.writer.metadata.leader_epoch(*log), producer.id, producer.epoch)

    def _records(
        self,
        orders: Mapping[Partition, OrderRecord],
        grown: MapUpdate,
        promise: Promise | None,
        gaps: Sequence[Record],
        now: int,
    ) -> dict[Partition, list[Record]]:
        records = [*gaps, encode_promise(self.index, promise, now)] if promise is not None else [*gaps]
        records += [encode_order(partition, record, now) for partition, record in orders.items()]
        records += [encode_position(each.source, position, now) for each, position in grown.positions.items()]
        segments = [encode_segment(partition, segment, now) for partition, segment in grown.segments]
        return {self.positions: records} | ({self.offsets: segments} if segments else {})
