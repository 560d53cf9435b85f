"""Chunks of records, as a lane takes them from its reader and gives them to the destination."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica


@dataclass(frozen=True, slots=True)
class Chunk:
    """The outcome of one Fetch for one partition: what to write, and where reading goes on.

    ``next_offset`` counts what is left out by design too: markers, aborted and empty batches. ``bytes`` is what the
    chunk holds in memory.
    """

    replica: Replica
    batches: tuple[Outgoing, ...]
    next_offset: int
    leader_epoch: int

    def before(self, offset: int) -> "Chunk":
        """The batches of it that begin before a source offset."""
        batches = tuple(batch for batch in self.batches if batch.first_offset < offset)
        end = max(offset, batches[-1].next_offset) if batches else offset
        return replace(self, batches=batches, next_offset=min(self.next_offset, end))

    @property
    def records(self) -> int:
        """Number of records that it copies."""
        return sum(batch.records for batch in self.batches)

    @property
    def bytes(self) -> int:
        """The size of its batches."""
        return sum(len(batch.data) for batch in self.batches)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What was copied of one partition, in one transaction or in several.

    Offsets are the source's, the last one exclusive; ``committed`` is the time of the last commit, in milliseconds.
    """

    topic: str
    partition: int
    lane: int
    first_offset: int
    next_offset: int
    records: int
    bytes: int
    raw_batches: int
    rebuilt_batches: int
    committed: int


def advanced(position: Position, chunks: Iterable[Chunk]) -> Position:
    """The position after the chunks, which follow it in order (invariant D: never back)."""
    next_offset, leader_epoch, timestamp = position.next_offset, position.leader_epoch, position.timestamp
    records, size = position.records, position.bytes
    for chunk in chunks:
        if chunk.next_offset < next_offset:
            raise AssertionError(f"a position would move back from {next_offset} to {chunk.next_offset}")
        next_offset, leader_epoch = chunk.next_offset, chunk.leader_epoch
        for batch in chunk.batches:
            records += batch.records
            size += len(batch.data)
        timestamp = max([batch.max_timestamp for batch in chunk.batches], default=timestamp)
    return replace(
        position, next_offset=next_offset, leader_epoch=leader_epoch, records=records, bytes=size, timestamp=timestamp
    )


def by_partition(chunks: Iterable[Chunk]) -> dict[Replica, list[Chunk]]:
    """The chunks of each partition, in order."""
    grouped: dict[Replica, list[Chunk]] = {}
    for chunk in chunks:
        grouped.setdefault(chunk.replica, []).append(chunk)
    return grouped


def rounds(chunks: Mapping[Replica, Sequence[Chunk]]) -> list[list[tuple[Partition, Outgoing]]]:
    """The batches as Produce requests: one batch a partition in each, and each partition's in order."""
    queues = [
        [((replica.destination_topic, replica.partition), batch) for chunk in taken for batch in chunk.batches]
        for replica, taken in chunks.items()
    ]
    longest = max(map(len, queues), default=0)
    return [[queue[turn] for queue in queues if turn < len(queue)] for turn in range(longest)]


def ledger(
    chunks: Mapping[Replica, Sequence[Chunk]], lane: int, before: Mapping[Replica, int], now: int
) -> list[LedgerRow]:
    """The rows of one transaction; ``before`` holds the positions that it started from."""
    rows = []
    for replica, taken in chunks.items():
        batches = [batch for chunk in taken for batch in chunk.batches]
        raw = sum(batch.raw for batch in batches)
        rows.append(
            LedgerRow(
                topic=replica.source_topic,
                partition=replica.partition,
                lane=lane,
                first_offset=before[replica],
                next_offset=taken[-1].next_offset,
                records=sum(batch.records for batch in batches),
                bytes=sum(len(batch.data) for batch in batches),
                raw_batches=raw,
                rebuilt_batches=len(batches) - raw,
                committed=now,
            )
        )
    return rows
