"""What must hold: checked at each commit, before its markers are written, and in all logs at the end.

Letters are those of docs/exactly-once.md.
"""

import uuid
from bisect import bisect_left
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import HEADER, Batch, Header
from appliance.kafka.records.records import unpack
from appliance.link.model.checkpoint import Gap, StartOffsets
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.naming import Naming
from appliance.link.model.position import LOST, UNACCOUNTED, UNKNOWN, Position
from tests.simulation.brokers import Brokers, Topic
from tests.simulation.coordinator import Transaction
from tests.simulation.log import Entry, Log, Record


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(slots=True)
class Truth:
    """The committed records of a source partition, as far as they are decided, by offset."""

    log: Log
    begin: int = 0
    offsets: list[int] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    _next: int = 0
    """The first offset that is not looked at yet."""

    def learn(self) -> None:
        """Take in what is decided by now."""
        log = self.log
        for entry in log.entries[log.index(self._next) :]:
            if entry.base >= log.stable_end:
                break
            self._next = entry.last + 1
            if entry.records is not None and entry.outcome:
                self.offsets += range(entry.base, entry.last + 1)
                self.records += entry.records

    def between(self, first: int, end: int) -> list[Record]:
        """The committed records of these offsets."""
        return self.records[bisect_left(self.offsets, first) : bisect_left(self.offsets, end)]


@dataclass(slots=True)
class _Remembered:
    """What a transaction has the positions topic remember."""

    positions: dict[Partition, Position] = field(default_factory=dict)
    gaps: dict[Partition, Gap] = field(default_factory=dict)


class Invariants:
    """Watches a link between two clusters."""

    def __init__(self, naming: Naming, destination: Brokers) -> None:
        self._naming = naming
        self._destination = destination
        self.truths: dict[tuple[Partition, uuid.UUID], Truth] = {}
        self.current: dict[Partition, Truth] = {}
        self.positions: dict[Partition, Position] = {}
        self.copies: dict[Log, list[Record]] = {}
        """All that was committed to each copy."""
        self.remade: set[str] = set()
        """Source topics whose copies somebody deleted."""
        self.commits = 0
        self._lost: dict[tuple[Log, int, int], list[Record]] = {}
        """What copies have lost of transactions that may still commit, by producer and epoch."""

    def watch(self, topic: Topic) -> None:
        """A source topic that is to be copied, from each partition's first record on; or its new partitions."""
        for log in topic.logs:
            key = (topic.name, log.number), topic.id
            if key not in self.truths:
                self.truths[key] = self.current[key[0]] = Truth(log)

    def committed(self, transaction: Transaction) -> None:
        """A transaction commits: A, D, E, F, G, I, K, and what B and C are for."""
        self.commits += 1
        suffix = f".{self._naming.suffix}"
        new: dict[Partition, tuple[Log, list[Record]]] = {}
        remembered = _Remembered()
        for (topic, number), log in transaction.partitions.items():
            pending = log.pending(transaction.producer)
            if topic == self._naming.positions_topic:
                self._remember(remembered, pending)
            elif topic.endswith(suffix):
                if pending and not transaction.id.startswith(f"{self._naming.replicator}.lane-"):
                    raise Violation(f"I: {transaction.id} writes to {log}, a copy of {self._naming.replicator}")
                records = self._lost.pop((log, transaction.producer, transaction.epoch), [])
                records += [record for entry in pending for record in contents(entry)]
                new[topic.removesuffix(suffix), number] = log, records
        for partition, (log, records) in new.items():
            if records and partition not in remembered.positions:
                raise Violation(f"A: {len(records)} records of {partition} commit without a position")
            self.copies.setdefault(log, []).extend(records)
        for partition, position in remembered.positions.items():
            gap = remembered.gaps.get(partition)
            self._moved(partition, position, new[partition][1] if partition in new else [], gap)

    def losing(self, log: Log, offset: int) -> None:
        """A copy is about to lose everything from there on."""
        for entry in log.entries[log.index(offset) :]:
            if entry.outcome is None:
                key = log, entry.producer, entry.producer_epoch
                self._lost.setdefault(key, []).extend(contents(entry))

    def _remember(self, remembered: _Remembered, pending: list[Entry]) -> None:
        for entry in pending:
            for record in unpack(_batch(entry), 0):
                match decode(record):
                    case (tuple() as partition, Position() as position):
                        remembered.positions[partition] = position
                    case Gap() as gap:
                        remembered.gaps[gap.partition] = gap
                    case StartOffsets() as starts:
                        self._begin(starts)

    def _begin(self, starts: StartOffsets) -> None:
        """K: ``latest`` holds for the partitions that are there when the link is made."""
        for number, offset in enumerate(starts.offsets):
            truth = self.truths[(starts.topic, number), starts.source_id]
            if offset > truth.log.end:
                raise Violation(f"K: {starts.topic}-{number} is to begin at {offset}, and ends at {truth.log.end}")
            truth.begin = max(offset, truth.begin)

    def _moved(self, partition: Partition, position: Position, records: list[Record], gap: Gap | None) -> None:
        if position.next_offset == UNKNOWN:
            return
        truth, before = self.truths[partition, position.source_id], self.positions.get(partition)
        truth.learn()
        held = truth.begin if before is None else before.next_offset
        count = 0 if before is None else before.records
        if before is not None and _ids(before) != _ids(position):
            held = self._begun_again(partition, before, position, truth, gap)
        elif gap is not None:
            if (gap.first, gap.next) != (held, min(gap.next, truth.log.start)):
                raise Violation(f"F: {gap} is written down, {partition} was at {held}, starts at {truth.log.start}")
            held = gap.next
        elif before is None and held < truth.log.start:
            held = position.next_offset if position.next_offset <= truth.log.start else held  # deleted by retention
        if position.next_offset < held:
            raise Violation(f"D: the position of {partition} moves from {held} to {position.next_offset}")
        expected = truth.between(held, position.next_offset)
        if records != expected:
            raise Violation(
                f"A, E, F: from {held} to {position.next_offset} {partition} has {expected}, copied are {records}"
            )
        if position.records != count + len(records):
            raise Violation(
                f"A: the position of {partition} counts {position.records} records, copied are {count + len(records)}"
            )
        self.positions[partition] = position

    def _begun_again(
        self, partition: Partition, before: Position, position: Position, truth: Truth, gap: Gap | None
    ) -> int:
        """G: another topic, on either side, is begun at its first record, which is written down."""
        if gap is None or (gap.first, gap.next) != (before.next_offset, -1):
            raise Violation(f"G: {partition} goes on as {position} after {before}, and {gap} is written down")
        if truth.between(truth.log.start, position.next_offset):
            raise Violation(f"G, K: {partition} was made anew and begins at {position.next_offset}")
        return position.next_offset

    def unsettled(self, lost: set[Log], may_stop: bool) -> list[str]:
        """What is not copied yet, and does not say that it cannot be; of ``lost`` copies too, that they are."""
        return [
            f"{partition[0]}-{partition[1]}"
            for partition, truth in self.current.items()
            if not self._settled(partition, truth, lost, may_stop)
        ]

    def _settled(self, partition: Partition, truth: Truth, lost: set[Log], may_stop: bool) -> bool:
        position = self.positions.get(partition)
        if position is None:
            return False
        if position.stopped and (may_stop or LOST in position.stopped):
            return True
        if UNACCOUNTED in position.stopped and partition[0] in self.remade:
            return True  # a Produce names a topic, not its id: one transaction may go into the new one unnoticed
        topic = self._destination.topics.get(self._naming.destination(partition[0]))
        if topic is None or truth is not self.truths.get((partition, position.source_id)):
            return False
        if position.next_offset < truth.log.end or position.destination_id != topic.id:
            return False
        return topic.logs[partition[1]] not in lost or self._is_whole(topic.logs[partition[1]])

    def _is_whole(self, log: Log) -> bool:
        """A read_committed consumer sees just what was committed."""
        entries = [entry for entry in log.entries if not entry.marker]
        seen = [record for entry in entries if entry.outcome for record in contents(entry)]
        return seen == self.copies.get(log, []) and all(entry.outcome is not None for entry in entries)

    def at_the_end(self, lost: set[Log]) -> None:
        """A read_committed consumer sees in each copy what was committed there, and all of it."""
        for partition in self.current:
            position = self.positions[partition]
            log = self._destination.log((self._naming.destination(partition[0]), partition[1]))
            assert log is not None
            whole = self._is_whole(log)
            if log in lost and not whole:
                if LOST not in position.stopped:
                    raise Violation(f"J: {log} has lost records, and {partition} does not say so: {position}")
            elif not whole:
                raise Violation(f"B: {log} does not hold what was committed to it: {self.copies.get(log, [])}")


def _ids(position: Position) -> tuple[uuid.UUID, uuid.UUID]:
    return position.source_id, position.destination_id


def contents(entry: Entry) -> list[Record]:
    """A batch's records."""
    if entry.records is None:
        entry.records = [(record.timestamp, record.body) for record in unpack(_batch(entry), 0)]
    return entry.records


def _batch(entry: Entry) -> Batch:
    return Batch(Header._make(HEADER.unpack_from(entry.data)), memoryview(entry.data))
