"""The invariants, checked at each commit before its markers are written; ``at_rest`` checks all logs at the end.

Letters are those of docs/why/exactly-once.md.
"""

import uuid
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import unpack
from appliance.link.model.checkpoint import OPERATOR, Gap, LinkRecord, Owner, StartOffsets, Tombstone
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.copy_states import StateRecord
from appliance.link.model.layout import Layout, LayoutRecord
from appliance.link.model.naming import Naming
from appliance.link.model.position import LOST, UNKNOWN, Position
from tests.simulation.brokers import Brokers, Topic
from tests.simulation.coordinator import Transaction
from tests.simulation.log import Entry, Log, Record, batch_of, contents, placed, seen
from tests.simulation.obedience import Obedience
from tests.simulation.translations import ENDLESS, Translations
from tests.simulation.truth import Truth


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(slots=True)
class _Remembered:
    """The positions that a transaction writes, and the states, by lane."""

    positions: dict[Partition, Position] = field(default_factory=dict)
    gaps: dict[Partition, Gap] = field(default_factory=dict)
    states: dict[int, list[StateRecord]] = field(default_factory=dict)
    by_operator: bool = False
    layout: Layout | None = None


class Invariants:
    """Watches a link between two clusters."""

    def __init__(self, naming: Naming, destination: Brokers, lanes: int) -> None:
        self.layout, self.is_changing = Layout(lanes), False
        self._in_lanes: dict[int, dict[Partition, Position]] = {}
        """The positions in each partition of the positions topic."""
        self._naming = naming
        self._destination = destination
        self.truths: dict[tuple[Partition, uuid.UUID], Truth] = {}
        self.current: dict[Partition, Truth] = {}
        self.positions: dict[Partition, Position] = {}
        self.newest: dict[Partition, Position] = {}
        """The same with those that say that nobody knows how far a partition is copied."""
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
        self.translations = Translations(_violated)
        self.obedience = Obedience(_violated)
        self._lost: dict[tuple[Log, int, int], list[Record]] = {}
        """Lost records of transactions that may still commit, by copy, producer and epoch."""

    def watch(self, topic: Topic) -> None:
        """A source topic that is to be copied, from each partition's first record on; or its new partitions."""
        for log in topic.logs:
            key = (topic.name, log.number), topic.id
            if key not in self.truths:
                self.truths[key] = self.current[key[0]] = Truth(log)

    def committed(self, transaction: Transaction) -> None:
        """A transaction commits: A, D, E, F, G, I, K, M, and what B and C are for."""
        self.commits += 1
        suffix = self._naming.destination("")
        new: dict[Partition, tuple[Log, list[tuple[int, Record]]]] = {}
        remembered = _Remembered()
        for (topic, number), log in transaction.partitions.items():
            pending = log.pending(transaction.producer)
            if topic == self._naming.positions_topic:
                self._remember(remembered, pending, number)
            elif topic.endswith(suffix):
                if pending and not transaction.id.startswith(f"{self._naming.replicator}.lane-"):
                    raise Violation(f"I: {transaction.id} writes to {log}, a copy of {self._naming.replicator}")
                lost = self._lost.pop((log, transaction.producer, transaction.epoch), ())
                records = [(-1, record) for record in lost]
                records += [record for entry in pending for record in placed(entry)]
                new[topic.removesuffix(suffix), number] = log, records
                self.translations.written(log, pending)
        for partition, (log, records) in new.items():
            if records and partition not in remembered.positions:
                raise Violation(f"A: {len(records)} records of {partition} commit without a position")
            if records:
                lane = int(transaction.id.rpartition("-")[2])
                if self.layout.lane_of(*partition) != lane:
                    raise Violation(f"B: {transaction.id} writes to {log}, which is not of its lane in {self.layout}")
                self.obedience.copied(lane, partition[0], transaction.id)
            self.copies.setdefault(log, []).extend(records)
        if transaction.id == self._naming.lanes_id:
            self._laid_out(remembered)
            remembered.positions.clear()
        for partition, position in remembered.positions.items():
            gap = remembered.gaps.get(partition)
            copied = new[partition][1] if partition in new else []
            if gap is not None or remembered.by_operator or position.stopped:
                self.translations.befell(self.copy_of(partition))
            if LOST in position.stopped:
                self.translations.noticed(self.copy_of(partition))
            if remembered.by_operator:
                self._chosen(partition, position, [record for _, record in copied], gap)
            else:
                self._moved(partition, position, copied, gap)
        for lane, states in remembered.states.items():
            self.obedience.took(lane, states)

    def _laid_out(self, remembered: _Remembered) -> None:
        """B, D, H: another layout moves positions to their lanes, and changes, loses and doubles none."""
        self.layout = remembered.layout or self.layout
        held = [item for own in self._in_lanes.values() for item in own.items()]
        if sorted(held, key=str) != sorted(self.positions.items(), key=str):
            raise Violation(f"D, H: {self.layout} leaves {held} of {self.positions}")
        for lane, own in self._in_lanes.items():
            if astray := [partition for partition in own if self.layout.lane_of(*partition) != lane]:
                raise Violation(f"H: lane {lane} of {self.layout} holds the positions of {astray}")

    def losing(self, log: Log, offset: int) -> None:
        """A copy is about to lose everything from there on."""
        for entry in log.entries[log.index(offset) :]:
            if entry.outcome is None:
                key = log, entry.producer, entry.producer_epoch
                self._lost.setdefault(key, []).extend(contents(entry))
        self.translations.places(log).lose(offset)

    def deleted(self, log: Log) -> None:
        """Retention has taken what a copy held before its log's start."""
        held = self.copies.get(log, [])
        self.copies[log] = [each for each in held if not 0 <= each[0] < log.start]

    def _remember(self, remembered: _Remembered, pending: list[Entry], lane: int) -> None:
        begins: list[StartOffsets] = []
        for entry in pending:
            for record in unpack(batch_of(entry), 0):
                match decode(record):
                    case (tuple() as partition, Position() as position):
                        remembered.positions[partition] = self.newest[partition] = position
                        self._in_lanes.setdefault(lane, {})[partition] = position
                    case Tombstone(partition, None):
                        self._in_lanes.get(lane, {}).pop(partition, None)
                    case Gap() as gap:
                        remembered.gaps[gap.partition] = gap
                    case (int(), Owner() as owner):
                        remembered.by_operator = owner.run == OPERATOR
                    case LinkRecord(number=0) as link:
                        self._made()
                        self.layout = link.layout
                    case LinkRecord() as link:
                        remembered.layout = link.layout
                    case LayoutRecord() as layout if lane == 0:
                        self.is_changing = layout.changing
                    case StartOffsets() as starts:
                        begins.append(starts)
                    case StateRecord() as state:
                        remembered.states.setdefault(lane, []).append(state)
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
            self.newest.clear()
            self._in_lanes.clear()
            self.obedience.forget()
            for truth in self.truths.values():
                truth.begin, truth.agreed = 0, None

    def _begin(self, starts: StartOffsets) -> None:
        """K: ``latest`` holds for the partitions that are there when the link is made."""
        for number, (offset, _) in enumerate(starts.places):
            truth = self.truths[Partition(starts.topic, number), starts.source_id]
            is_current = truth is self.current[starts.topic, number]  # else metadata lagged, and it holds for no topic
            if offset > truth.log.end and is_current:
                raise Violation(f"K: {starts.topic}-{number} is to begin at {offset}, and ends at {truth.log.end}")
            truth.begin = max(offset, truth.begin)

    def _moved(
        self, partition: Partition, position: Position, copied: list[tuple[int, Record]], gap: Gap | None
    ) -> None:
        if position.next_offset == UNKNOWN:
            self.unknown.add(partition)
            return
        truth, before = self.truths[partition, position.source_id], self.positions.get(partition)
        truth.learn()
        records = [record for _, record in copied]
        held = truth.begin if before is None else before.next_offset
        count = 0 if before is None else before.records
        if before is not None and _ids(before) != _ids(position):
            if before.destination_id != position.destination_id:
                self._accept(partition)  # no position has spoken of this copy yet
            held = truth.agreed = self._begun_again(partition, before, position, truth, gap)
        elif gap is not None:
            if (gap.first, gap.next) != (held, min(gap.next, truth.log.start)):
                raise Violation(f"F: {gap} is written down, {partition} was at {held}, starts at {truth.log.start}")
            if truth.agreed is not None and truth.agreed < held:
                raise Violation(f"F: {gap} is written down, and {partition} was truncated at {truth.agreed}")
            held = truth.agreed = gap.next
        elif before is None and held < truth.log.start:
            held = position.next_offset if position.next_offset <= truth.log.start else held  # deleted by retention
        if position.next_offset < held:
            raise Violation(f"D: the position of {partition} moves from {held} to {position.next_offset}")
        agreed = truth.agreed
        sources = truth.moved(records, held, position.next_offset, position.leader_epoch)
        if sources is None:
            expected = truth.between(held, position.next_offset)
            spliced = f"; the log was truncated at {agreed}" if agreed is not None and agreed < held else ""
            moved = f"from {held} to {position.next_offset} {partition}"
            raise Violation(f"A, E, F: {moved} has {expected}, copied are {records}{spliced}")
        if position.records != count + len(records):
            raise Violation(
                f"A: the position of {partition} counts {position.records} records, copied are {count + len(records)}"
            )
        if copied and (log := self.copy_of(partition)) is not None:
            self.translations.copied(log, position, copied, sources)
        self.positions[partition] = position

    def _begun_again(
        self, partition: Partition, before: Position, position: Position, truth: Truth, gap: Gap | None
    ) -> int:
        """G: another topic, on either side, is begun at its first record, which is written down.

        If the copy alone is another, the source's records are copied again: only what its log lacks now is left out.
        """
        again = min(before.next_offset, position.next_offset), position.next_offset
        lost = (before.next_offset, -1) if before.source_id != position.source_id else again
        if gap is None or (gap.first, gap.next) != lost:
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
            if not self._is_left_out(partition, before, position, gap):
                raise Violation(f"F: the operator moves {partition} from {before} to {position}, and writes down {gap}")
        if before is None or _place(before) != _place(position):
            self.truths[partition, position.source_id].chosen(position.next_offset, position.leader_epoch)
        self.positions[partition] = position
        if position.copy_end is None or position.copy_end.producer_id < 0:
            self._accept(partition)

    def _is_left_out(self, partition: Partition, before: Position, position: Position, gap: Gap | None) -> bool:
        """F: the gap is what the operator leaves out, no more and no less; a loss of the copy has no offsets."""
        if before.source_id != position.source_id:
            return gap is not None and (gap.first, gap.next) == (before.next_offset, -1)
        if gap is None:
            return position.next_offset <= before.next_offset
        if gap.first == gap.next:
            had_lost = before.has_stopped_for(LOST) or self.copy_of(partition) in self.lost
            had_lost = had_lost or before.destination_id != position.destination_id
            at = min(before.next_offset, position.next_offset)
            return gap.first == (position.next_offset if at == UNKNOWN else at) and (had_lost or at == UNKNOWN)
        truth = self.truths[partition, position.source_id]
        agreed = before.next_offset if truth.agreed is None else min(before.next_offset, truth.agreed)
        # The log may have been truncated once more since the command asked.
        return agreed <= gap.first <= before.next_offset and gap.first < gap.next == position.next_offset

    def _accept(self, partition: Partition) -> None:
        """Take a copy that has lost something as it is now."""
        log = self.copy_of(partition)
        if log in self.lost:
            self.copies[log] = seen(log)
            self.lost.discard(log)
            self.translations.places(log).lost_source = ENDLESS

    def copy_of(self, partition: Partition) -> Log | None:
        """The log of a source partition's copy."""
        return self._destination.log((self._naming.destination(partition[0]), partition[1]))

    def copy_id(self, topic: str) -> uuid.UUID | None:
        """The id of a source topic's copy as it is now."""
        copy = self._destination.topics.get(self._naming.destination(topic))
        return copy.id if copy is not None else None


def _violated(what: str) -> None:
    raise Violation(what)


def _place(position: Position) -> tuple[uuid.UUID, uuid.UUID, int, int]:
    return *_ids(position), position.next_offset, position.leader_epoch


def _ids(position: Position) -> tuple[uuid.UUID, uuid.UUID]:
    return position.source_id, position.destination_id
