"""What must hold: checked at each commit, before its markers are written, and in all logs at the end.

Letters are those of docs/exactly-once.md.
"""

from bisect import bisect_left
from dataclasses import dataclass, field

from appliance.kafka.client.offsets import Partition
from appliance.kafka.records.batch import HEADER, Batch, Header
from appliance.kafka.records.records import unpack
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.position import UNKNOWN, Position
from tests.simulation.brokers import Brokers
from tests.simulation.coordinator import Transaction
from tests.simulation.log import Entry, Log, Record


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(slots=True)
class Truth:
    """The committed records of a source partition, as far as they are decided, by offset."""

    log: Log
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
class Copied:
    """A partition's newest position, and how many records were copied."""

    position: Position
    records: int


class Invariants:
    """Watches the link between two clusters."""

    def __init__(self, positions_topic: str, suffix: str) -> None:
        self.positions_topic = positions_topic
        self.suffix = suffix
        self.truths: dict[Partition, Truth] = {}
        self.copied: dict[Partition, Copied] = {}
        self.begins: dict[Partition, int] = {}
        self.commits = 0

    def watch(self, log: Log) -> None:
        """A source partition that is to be copied, from its first record on."""
        self.truths[log.topic, log.number] = Truth(log)
        self.begins[log.topic, log.number] = log.start

    def committed(self, transaction: Transaction) -> None:
        """A transaction commits: A, D, E, F, K, and what B and C are for."""
        self.commits += 1
        new: dict[Partition, list[Record]] = {}
        positions: dict[Partition, Position] = {}
        for (topic, number), log in transaction.partitions.items():
            pending = log.pending(transaction.producer)
            if topic == self.positions_topic:
                for entry in pending:
                    for record in unpack(_batch(entry), 0):
                        match decode(record):
                            case (tuple() as partition, Position() as position):
                                positions[partition] = position
            elif topic.endswith(f".{self.suffix}"):
                source = topic.removesuffix(f".{self.suffix}"), number
                new[source] = [record for entry in pending for record in contents(entry)]
        for partition, records in new.items():
            if records and partition not in positions:
                raise Violation(f"A: {len(records)} records of {partition} commit without a position")
        for partition, position in positions.items():
            self._moved(partition, position, new.get(partition, []))

    def _moved(self, partition: Partition, position: Position, records: list[Record]) -> None:
        if position.next_offset == UNKNOWN:
            return
        truth, before = self.truths[partition], self.copied.get(partition)
        truth.learn()
        held = before.position.next_offset if before else self.begins[partition]
        if position.next_offset < held:
            raise Violation(f"D: the position of {partition} moves from {held} to {position.next_offset}")
        expected = truth.between(held, position.next_offset)
        if records != expected:
            raise Violation(
                f"A, E, F: from {held} to {position.next_offset} {partition} has {expected}, copied are {records}"
            )
        count = (before.records if before else 0) + len(records)
        if position.records != count:
            raise Violation(f"A: the position of {partition} counts {position.records} records, copied are {count}")
        self.copied[partition] = Copied(position, count)

    def at_the_end(self, destination: Brokers) -> None:
        """All is copied, and is what a read_committed consumer sees (B: nobody else wrote there)."""
        for partition, truth in self.truths.items():
            truth.learn()
            log = destination.log((f"{partition[0]}.{self.suffix}", partition[1]))
            entries = [entry for entry in log.entries if not entry.marker] if log else []
            if any(entry.outcome is None for entry in entries):
                raise Violation(f"B: the copy of {partition} has an open transaction")
            seen = [record for entry in entries if entry.outcome for record in contents(entry)]
            if seen != truth.records:
                raise Violation(f"the copy of {partition} holds {seen}, and its source {truth.records}")

    def behind(self) -> list[Partition]:
        """What is not copied yet."""
        return [
            partition
            for partition, truth in self.truths.items()
            if partition not in self.copied or self.copied[partition].position.next_offset < truth.log.end
        ]


def contents(entry: Entry) -> list[Record]:
    """A batch's records."""
    if entry.records is None:
        entry.records = [(record.timestamp, record.body) for record in unpack(_batch(entry), 0)]
    return entry.records


def _batch(entry: Entry) -> Batch:
    return Batch(Header._make(HEADER.unpack_from(entry.data)), memoryview(entry.data))
