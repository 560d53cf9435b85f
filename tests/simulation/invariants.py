"""The invariants, checked at each commit before its markers are written, and in all logs at the end.

Letters are those of docs/exactly-once.md.
"""

import uuid
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import unpack
from appliance.link.model.checkpoint import OPERATOR, Gap, LinkRecord, Owner, StartOffsets
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.naming import Naming
from appliance.link.model.position import LOST, UNACCOUNTED, UNKNOWN, Position
from tests.simulation.brokers import Brokers, Topic
from tests.simulation.coordinator import Transaction
from tests.simulation.log import Entry, Log, Record, batch_of, contents, placed
from tests.simulation.truth import Truth


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(slots=True)
class _Remembered:
    """The positions that a transaction writes."""

    positions: dict[Partition, Position] = field(default_factory=dict)
    gaps: dict[Partition, Gap] = field(default_factory=dict)
    by_operator: bool = False


class Invariants:
    """Watches a link between two clusters."""

    def __init__(self, naming: Naming, destination: Brokers) -> None:
        self._naming = naming
        self._destination = destination
        self.truths: dict[tuple[Partition, uuid.UUID], Truth] = {}
        self.current: dict[Partition, Truth] = {}
        self.positions: dict[Partition, Position] = {}
        self.copies: dict[Log, list[tuple[int, Record]]] = {}
        """All that was committed to each copy, by the copy's offsets, and -1 where it was lost before."""
        self.lost: set[Log] = set()
        """The copies that have lost something (invariant J)."""
        self.unknown: set[Partition] = set()
        """The partitions that were stopped since nobody knows how far they are copied (invariant H)."""
        self.remade: set[str] = set()
        """Source topics whose copies somebody deleted."""
        self.named: set[tuple[str, int | None]] = set()
        """The topics, and the partitions if any, that the operator has named."""
        self.is_emptied = self.may_adopt = False
        """The positions topic was deleted, and the operator lets the link go on without what it held."""
        self.commits = 0
        self._lost: dict[tuple[Log, int, int], list[Record]] = {}
        """Lost records of transactions that may still commit, by copy, producer and epoch."""

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
        new: dict[Partition, tuple[Log, list[tuple[int, Record]]]] = {}
        remembered = _Remembered()
        for (topic, number), log in transaction.partitions.items():
            pending = log.pending(transaction.producer)
            if topic == self._naming.positions_topic:
                self._remember(remembered, pending)
            elif topic.endswith(suffix):
                if pending and not transaction.id.startswith(f"{self._naming.replicator}.lane-"):
                    raise Violation(f"I: {transaction.id} writes to {log}, a copy of {self._naming.replicator}")
                lost = self._lost.pop((log, transaction.producer, transaction.epoch), ())
                records = [(-1, record) for record in lost]
                records += [record for entry in pending for record in placed(entry)]
                new[topic.removesuffix(suffix), number] = log, records
        for partition, (log, records) in new.items():
            if records and partition not in remembered.positions:
                raise Violation(f"A: {len(records)} records of {partition} commit without a position")
            self.copies.setdefault(log, []).extend(records)
        for partition, position in remembered.positions.items():
            gap = remembered.gaps.get(partition)
            copied = [record for _, record in new[partition][1]] if partition in new else []
            if remembered.by_operator:
                self._chosen(partition, position, copied, gap)
            else:
                self._moved(partition, position, copied, gap)

    def losing(self, log: Log, offset: int) -> None:
        """A copy is about to lose everything from there on."""
        for entry in log.entries[log.index(offset) :]:
            if entry.outcome is None:
                key = log, entry.producer, entry.producer_epoch
                self._lost.setdefault(key, []).extend(contents(entry))

    def _remember(self, remembered: _Remembered, pending: list[Entry]) -> None:
        begins: list[StartOffsets] = []
        for entry in pending:
            for record in unpack(batch_of(entry), 0):
                match decode(record):
                    case (tuple() as partition, Position() as position):
                        remembered.positions[partition] = position
                    case Gap() as gap:
                        remembered.gaps[gap.partition] = gap
                    case (int(), Owner() as owner):
                        remembered.by_operator = owner.run == OPERATOR
                    case LinkRecord():
                        self._made()
                    case StartOffsets() as starts:
                        begins.append(starts)
        for starts in begins:  # written in one transaction with the link that is made, and before it
            self._begin(starts)

    def _made(self) -> None:
        """H: a link that remembered something is made anew by the operator's word alone; copies that are there stay.

        One that lost its positions topic before it copied anything is made anew, and may begin elsewhere.
        """
        if self.positions and not self.may_adopt:
            raise Violation(f"H: the link is made anew, and {len(self.positions)} positions were remembered")
        if self.is_emptied:
            self.is_emptied = False
            self.positions.clear()
            for truth in self.truths.values():
                truth.begin = 0

    def _begin(self, starts: StartOffsets) -> None:
        """K: ``latest`` holds for the partitions that are there when the link is made."""
        for number, offset in enumerate(starts.offsets):
            truth = self.truths[(starts.topic, number), starts.source_id]
            is_current = truth is self.current[starts.topic, number]  # else metadata lagged, and it holds for no topic
            if offset > truth.log.end and is_current:
                raise Violation(f"K: {starts.topic}-{number} is to begin at {offset}, and ends at {truth.log.end}")
            truth.begin = max(offset, truth.begin)

    def _moved(self, partition: Partition, position: Position, records: list[Record], gap: Gap | None) -> None:
        if position.next_offset == UNKNOWN:
            self.unknown.add(partition)
            return
        truth, before = self.truths[partition, position.source_id], self.positions.get(partition)
        truth.learn()
        held = truth.begin if before is None else before.next_offset
        count = 0 if before is None else before.records
        if before is not None and _ids(before) != _ids(position):
            if before.destination_id != position.destination_id:
                self._accept(partition)  # no position has spoken of this copy yet
            held = self._begun_again(partition, before, position, truth, gap)
        elif gap is not None:
            if (gap.first, gap.next) != (held, min(gap.next, truth.log.start)):
                raise Violation(f"F: {gap} is written down, {partition} was at {held}, starts at {truth.log.start}")
            held = gap.next
        elif before is None and held < truth.log.start:
            held = position.next_offset if position.next_offset <= truth.log.start else held  # deleted by retention
        if position.next_offset < held:
            raise Violation(f"D: the position of {partition} moves from {held} to {position.next_offset}")
        if not truth.is_copied(records, held, position.next_offset):
            expected = truth.between(held, position.next_offset)
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

    def _chosen(self, partition: Partition, position: Position, records: list[Record], gap: Gap | None) -> None:
        """D, F: the operator moves what is stopped, or named, and leaves a gap behind that says where it was."""
        before = self.positions.get(partition)
        if records:
            raise Violation(f"B: the operator writes to the copy of {partition}")
        if before is not None:
            if not before.stopped and not {(partition[0], None), partition} & self.named:
                raise Violation(f"D: the operator moves {partition}, which is neither stopped nor named")
            if position.records != before.records:
                raise Violation(f"A: {partition} has copied {before.records} records, and by the operator {position}")
            spliced = before.source_id == position.source_id and position.next_offset >= before.next_offset
            if gap is None and (_ids(before), before.next_offset) != (_ids(position), position.next_offset):
                raise Violation(
                    f"F: the operator moves {partition} from {before} to {position}, and writes down no gap"
                )
            left = (before.next_offset, position.next_offset if spliced else -1)
            if gap is not None and (gap.first, gap.next) != left:
                raise Violation(f"F: the operator moves {partition} by {left}, and writes down {gap}")
        self.positions[partition] = position
        if position.copy_end is None or position.copy_end.producer_id < 0:
            self._accept(partition)

    def _accept(self, partition: Partition) -> None:
        """Take a copy that has lost something as it is now."""
        log = self._destination.log((self._naming.destination(partition[0]), partition[1]))
        if log in self.lost:
            self.copies[log] = self._seen(log)
            self.lost.discard(log)

    def unsettled(self, may_stop: bool) -> list[str]:
        """Partitions that are neither copied nor reported as stopped; also lost copies that are not reported."""
        return [
            f"{partition[0]}-{partition[1]}"
            for partition, truth in self.current.items()
            if not self._settled(partition, truth, may_stop)
        ]

    def _settled(self, partition: Partition, truth: Truth, may_stop: bool) -> bool:
        position = self.positions.get(partition)
        if position is None:
            return may_stop and partition in self.unknown
        if position.stopped and (may_stop or LOST in position.stopped):
            return True
        if UNACCOUNTED in position.stopped and partition[0] in self.remade:
            return True  # a Produce names a topic, not its id: one transaction may go into the new one unnoticed
        topic = self._destination.topics.get(self._naming.destination(partition[0]))
        if topic is None or truth is not self.truths.get((partition, position.source_id)):
            return False
        if position.next_offset < truth.log.end or position.destination_id != topic.id:
            return False
        return topic.logs[partition[1]] not in self.lost or self._is_whole(topic.logs[partition[1]])

    def _seen(self, log: Log) -> list[tuple[int, Record]]:
        """The records that a read_committed consumer sees."""
        entries = [entry for entry in log.entries if entry.outcome and not entry.marker]
        return [record for entry in entries for record in placed(entry)]

    def _is_whole(self, log: Log) -> bool:
        """A read_committed consumer sees exactly the committed records, except for compacted ones."""
        held = self.copies.get(log, [])
        if log.removed:
            removed = set(log.removed)
            held = [each for each in held if each[0] not in removed]
        decided = all(entry.outcome is not None for entry in log.entries)
        return decided and [r for _, r in self._seen(log)] == [r for _, r in held]

    def at_the_end(self) -> None:
        """A read_committed consumer sees in each copy all the records that were committed there."""
        for partition in self.current:
            position = self.positions.get(partition)
            log = self._destination.log((self._naming.destination(partition[0]), partition[1]))
            if log is None and position is not None and position.stopped:
                continue  # somebody deleted the copy of a partition that had stopped
            assert log is not None
            whole = self._is_whole(log)
            if log in self.lost and not whole:
                if position is None or LOST not in position.stopped:
                    raise Violation(f"J: {log} has lost records, and {partition} does not say so: {position}")
            elif not whole:
                raise Violation(f"B: {log} does not hold what was committed to it: {self.copies.get(log, [])}")


def _ids(position: Position) -> tuple[uuid.UUID, uuid.UUID]:
    return position.source_id, position.destination_id
