"""Chunks of records, as a lane takes them from its reader and gives them to the destination: their sums and sizes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from appliance.errors import TransactionTimedOut
from appliance.grouping import grouped
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing
from appliance.link.model.naming import DEAD_LETTERS
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica

_CYCLE = 2
"""Minimum spacing of transaction starts, as a multiple of the average commit time."""

_NEWEST = 1 / 8
"""EWMA weight of the newest commit time: a broker's pause must not cost its time twice."""

LEAST_BYTES = 64 * 1024
"""Smallest limit, in bytes: a batch that is larger is sent by itself."""

_OVER = 0.9
"""Share of the timeout after which a failed transaction counts as too large: the coordinator's clock began later."""

_QUICK = 1 / 4
"""Share of the timeout within which a transaction has to commit before its size may double."""


def dead_letters_of(replica: Replica) -> Partition:
    """The partition of the records that the link's SQL fails on."""
    return Partition(replica.destination_topic + DEAD_LETTERS, replica.partition)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The outcome of one Fetch for one partition, or a part of it: the batches to write, and where reading continues.

    All batches were written in one leader epoch. ``next_offset`` also covers what is left out by design: markers,
    aborted and empty batches, and copies, which ``dropped`` names by first offset and number of records. ``bytes`` is
    the chunk's size in memory. ``filtered`` counts the records that the link's SQL has left out; ``dead_letters`` are
    batches of those that it failed on.
    """

    replica: Replica
    batches: tuple[Outgoing, ...]
    next_offset: int
    leader_epoch: int
    dropped: tuple[tuple[int, int], ...] = ()
    filtered: int = 0
    dead_letters: tuple[Outgoing, ...] = ()

    def cut(self, limit: int) -> tuple["Chunk", "Chunk | None"]:
        """Its first batches, up to ``limit`` bytes but at least one, and the others, if any."""
        if self.bytes <= limit:
            return self, None
        sizes = accumulate(len(batch.data) for batch in self.batches)
        count = max(1, sum(size <= limit for size in sizes))
        if count == len(self.batches):
            return self, None
        first, others, at = self.batches[:count], self.batches[count:], self.batches[count - 1].next_offset
        first_part = replace(self, batches=first, next_offset=at, dropped=self.dropped_in(0, at))
        return first_part, replace(self, batches=others, dropped=self.dropped_in(at, self.next_offset))

    def dropped_in(self, first: int, following: int) -> tuple[tuple[int, int], ...]:
        """The dropped batches that begin there."""
        return tuple(each for each in self.dropped if first <= each[0] < following) if self.dropped else ()

    @property
    def records(self) -> int:
        """Number of records in it."""
        return sum(batch.records for batch in self.batches)

    @property
    def rebuilt(self) -> int:
        """Number of records in batches that do not go raw."""
        return sum(batch.records for batch in self.batches if not batch.raw)

    @property
    def bytes(self) -> int:
        """The size of its batches."""
        return sum(len(batch.data) for batch in self.batches)


def advanced(position: Position, chunks: Iterable[Chunk]) -> Position:
    """The position after these chunks in order (invariant D: never back); no longer stopped."""
    for chunk in chunks:
        if chunk.next_offset < position.next_offset:
            raise AssertionError(f"a position would move back from {position.next_offset} to {chunk.next_offset}")
        position = replace(
            position.go_on(),
            trial=None,
            next_offset=chunk.next_offset,
            leader_epoch=chunk.leader_epoch,
            records=position.records + chunk.records,
            bytes=position.bytes + chunk.bytes,
            dropped=position.dropped + sum(records for _, records in chunk.dropped),
            filtered=position.filtered + chunk.filtered,
            dead_letters=position.dead_letters + sum(batch.records for batch in chunk.dead_letters),
            rebuilt=(position.rebuilt or 0) + chunk.rebuilt,
            timestamp=max([batch.max_timestamp for batch in chunk.batches], default=position.timestamp),
        )
    return position


def by_partition(chunks: Iterable[Chunk]) -> dict[Replica, list[Chunk]]:
    """The chunks of each partition, in order."""
    return grouped((chunk.replica, chunk) for chunk in chunks)


def rounds(chunks: Mapping[Replica, Sequence[Chunk]]) -> list[list[tuple[Partition, Outgoing]]]:
    """The batches as Produce requests: each has one batch a partition, in the partition's order."""
    queues = [
        [(replica.copy, batch) for chunk in taken for batch in chunk.batches] for replica, taken in chunks.items()
    ]
    queues += [
        [(dead_letters_of(replica), batch) for chunk in taken for batch in chunk.dead_letters]
        for replica, taken in chunks.items()
    ]
    return by_turn(queues)


def by_turn(queues: Sequence[Sequence[tuple[Partition, Outgoing]]]) -> list[list[tuple[Partition, Outgoing]]]:
    """The batches of each partition as Produce requests, which take one a partition."""
    longest = max(map(len, queues), default=0)
    return [[queue[turn] for queue in queues if turn < len(queue)] for turn in range(longest)]


@dataclass(slots=True)
class Ledger:
    """The sums of the chunks that a task's lanes have committed since the last call."""

    records: int = 0
    bytes: int = 0
    raw_batches: int = 0
    rebuilt_batches: int = 0
    partitions: set[Partition] = field(default_factory=set)
    filtered: int = 0

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Count the chunks of one more transaction."""
        for chunk in chunks:
            self.partitions.add(chunk.replica.source)
            self.records += chunk.records
            self.bytes += chunk.bytes
            self.filtered += chunk.filtered
            for batch in chunk.batches:
                self.raw_batches += batch.raw
                self.rebuilt_batches += not batch.raw

    def take(self) -> "Ledger":
        """The sums of what was added since the last time."""
        sums = replace(self)
        self.records = self.bytes = self.raw_batches = self.rebuilt_batches = self.filtered = 0
        self.partitions = set()
        return sums


@dataclass(slots=True)
class TransactionSize:
    """The size of a lane's next transaction: half as much after one that outlasted its timeout, more after quick ones.

    ``bytes`` is the limit for it, ``most`` the largest limit; ``timeout`` is in seconds.
    """

    most: int
    timeout: float
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.bytes = self.most

    def note_commit(self, size: int, seconds: float) -> None:
        """Take in a transaction's duration; that of a small one says nothing about the limit's size."""
        if seconds < _QUICK * self.timeout and size >= self.bytes // 2:
            self.bytes = min(2 * self.bytes, self.most)

    def note_failure(self, size: int, seconds: float) -> TransactionTimedOut | None:
        """Take in a failed transaction; the problem, if its timeout was over."""
        if seconds < _OVER * self.timeout:
            return None
        self.bytes = min(self.most, max(LEAST_BYTES, min(self.bytes, size) // 2))
        return TransactionTimedOut(
            f"a transaction of {size} bytes took {seconds:.1f} s, longer than TRANSACTION_TIMEOUT_SECONDS="
            f"{self.timeout:g}, and was aborted: the next one holds at most {self.bytes} bytes"
        )


@dataclass(slots=True)
class Spacing:
    """The spacing of a lane's transaction starts while records trickle, at most ``longest`` seconds."""

    longest: float
    _took: float = 0.0

    def note_commit(self, seconds: float) -> None:
        """Take in a transaction's duration."""
        self._took += (seconds - self._took) * _NEWEST

    @property
    def seconds(self) -> float:
        """The least time from one start to the next."""
        return min(_CYCLE * self._took, self.longest)
