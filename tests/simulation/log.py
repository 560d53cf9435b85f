"""One partition's log as a broker keeps it: batches of real bytes, transactions, markers, leader epochs."""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import crc32c
from kio.schema.errors import ErrorCode

from appliance.clock import now_ms
from appliance.kafka.records.batch import HEADER, TRANSACTIONAL, Batch, Header
from appliance.kafka.records.committed import AbortedTransaction
from appliance.kafka.records.records import unpack
from tests.support.batches import control

Record = tuple[int, bytes]
"""A record's timestamp, and its key, value and headers as bytes."""

_PLACE = struct.Struct(">q8xi")
_BASE, _EPOCH = struct.Struct(">q"), struct.Struct(">i")
_MARKERS = {kind: control(0, 0, kind) for kind in (0, 1)}
_KEPT = 5
"""Number of a producer's batches that a broker recognises when they are sent again."""


@dataclass(slots=True, eq=False)
class Entry:
    """A batch in the log; ``outcome`` is None as long as its transaction is open.

    ``offsets`` are those of its records where compaction has taken others; ``horizon``: it has been cleaned once, and
    what it deletes may go the next time.
    """

    base: int
    last: int
    data: bytes
    leader_epoch: int
    producer: int
    producer_epoch: int
    sequence: int
    outcome: bool | None
    marker: bool = False
    records: list[Record] | None = None
    offsets: list[int] | None = None
    horizon: bool = False


@dataclass(slots=True)
class ProducerState:
    """A partition's state of a producer: its epoch, the next sequence number, its newest batches."""

    epoch: int
    next: int = 0
    recent: list[tuple[int, int]] = field(default_factory=list)


class Finished(NamedTuple):
    """An aborted transaction: its producer, its first offset, the offset of its marker."""

    producer: int
    first: int
    marker: int


class Former(NamedTuple):
    """A leader that was deposed and does not know it yet: it serves readers with what it had."""

    leader: int
    epoch: int
    end: int
    stable_end: int


class Log:
    """Grows by ``append`` and ``mark``; ``changed`` calls whoever waits for more."""

    def __init__(self, topic: str, number: int, leader: int, forgives: bool = False) -> None:
        """With ``forgives`` any sequence number is taken of a producer that is not known here, as before Kafka 3.7."""
        self.topic, self.number, self.leader = topic, number, leader
        self.forgives = forgives
        self.leader_epoch = 0
        self.epochs: list[tuple[int, int]] = [(0, 0)]
        self.former: Former | None = None
        self.start = self.end = 0
        self.entries: list[Entry] = []
        self.open: dict[int, int] = {}
        self.aborted: list[Finished] = []
        self.producers: dict[int, ProducerState] = {}
        self.removed: list[int] = []
        """The offsets of the committed records that compaction took."""
        self.passed_over: set[int] = set()
        """Removed offsets that a Fetch has passed over since."""
        self.refuses: Callable[[bytes], ErrorCode | None] = lambda _: None
        """The error by which the broker refuses a batch, if it does."""

    def __repr__(self) -> str:
        return f"{self.topic}-{self.number}"

    @property
    def stable_end(self) -> int:
        """The last stable offset."""
        return min(self.open.values()) if self.open else self.end

    def append(self, data: bytes | bytearray, records: list[Record] | None = None) -> tuple[ErrorCode, int]:
        """Take a batch, or say why not; and where it lies."""
        if (refusal := self.refuses(bytes(data))) is not None:
            return refusal, -1
        header = Header._make(HEADER.unpack_from(data))
        transactional = bool(header.attributes & TRANSACTIONAL)
        if header.producer_id >= 0:
            code, offset = self._check(header)
            if offset >= 0 or code is not ErrorCode.none:
                return code, offset
        base = self.end
        self._add(data, header, base, None if transactional else True, records)
        if header.producer_id >= 0:
            state = self.producers.setdefault(header.producer_id, ProducerState(header.producer_epoch))
            if state.epoch != header.producer_epoch:
                state.epoch, state.recent = header.producer_epoch, []
            state.next = (header.base_sequence + header.records) % 2**31
            state.recent = [*state.recent, (header.base_sequence, base)][-_KEPT:]
            if transactional:
                self.open.setdefault(header.producer_id, base)
        return ErrorCode.none, base

    def _check(self, header: Header) -> tuple[ErrorCode, int]:
        state = self.producers.get(header.producer_id)
        if state is None or header.producer_epoch > state.epoch:
            fits = header.base_sequence == 0 or (state is None and self.forgives)
            return (ErrorCode.none if fits else ErrorCode.out_of_order_sequence_number), -1
        if header.producer_epoch < state.epoch:
            return ErrorCode.invalid_producer_epoch, -1
        for sequence, base in state.recent:
            if sequence == header.base_sequence:
                return ErrorCode.none, base  # sent again
        return (ErrorCode.none if header.base_sequence == state.next else ErrorCode.out_of_order_sequence_number), -1

    def mark(self, producer: int, epoch: int, committed: bool) -> None:
        """End a producer's transaction here."""
        data = bytearray(_MARKERS[committed])
        now = now_ms()
        header = Header._make(HEADER.unpack_from(data))._replace(
            base_timestamp=now, max_timestamp=now, producer_id=producer, producer_epoch=epoch
        )
        HEADER.pack_into(data, 0, *header)
        struct.pack_into(">I", data, 17, crc32c.crc32c(memoryview(data)[21:]))
        first = self.open.pop(producer, None)
        if first is not None:
            for entry in self.entries[self.index(first) :]:
                if entry.producer == producer and entry.outcome is None:
                    entry.outcome = committed
            if not committed:
                self.aborted.append(Finished(producer, first, self.end))
        self._add(data, header, self.end, committed, None, marker=True)
        state = self.producers.get(producer)
        if state is None or state.epoch < epoch:
            self.producers[producer] = ProducerState(epoch)

    def _add(
        self, data: bytes | bytearray, header: Header, base: int, outcome: bool | None, records: list[Record] | None,
        marker: bool = False,
    ) -> None:  # fmt: skip
        placed = bytearray(data)
        _BASE.pack_into(placed, 0, base)
        _EPOCH.pack_into(placed, 12, self.leader_epoch)
        last = base + header.last_offset_delta
        entry = Entry(
            base, last, bytes(placed), self.leader_epoch, header.producer_id, header.producer_epoch,
            header.base_sequence, outcome, marker, records,
        )  # fmt: skip
        self.entries.append(entry)
        self.end = last + 1

    def index(self, offset: int) -> int:
        """The index of the first entry that ends at that offset or later."""
        return bisect_left(self.entries, offset, key=lambda entry: entry.last)

    def pending(self, producer: int) -> list[Entry]:
        """The batches of a producer's open transaction."""
        first = self.open.get(producer)
        if first is None:
            return []
        return [e for e in self.entries[self.index(first) :] if e.producer == producer and e.outcome is None]

    def read(self, offset: int, size: int, end: int) -> tuple[bytes, tuple[AbortedTransaction, ...]]:
        """Whole batches from an offset on, below ``end``, at least one; and the aborted transactions among them."""
        pieces: list[bytes] = []
        last, total = offset, 0
        for entry in self.entries[self.index(offset) :]:
            if entry.base >= end or (pieces and total + len(entry.data) > size):
                break
            pieces.append(entry.data)
            total += len(entry.data)
            last = entry.last
        if not pieces:
            return b"", ()
        if self.removed:
            self.passed_over.update(self.removed[bisect_left(self.removed, offset) : bisect_right(self.removed, last)])
        aborted = tuple(
            AbortedTransaction(done.producer, done.first)
            for done in self.aborted
            if offset <= done.marker and done.first <= last
        )
        return (pieces[0] if len(pieces) == 1 else b"".join(pieces)), aborted

    def lead(self, leader: int, unnoticed: bool = False) -> None:
        """Another leader, in a new epoch; with ``unnoticed`` the one before goes on for a while."""
        self.former = Former(self.leader, self.leader_epoch, self.end, self.stable_end) if unnoticed else None
        self.leader = leader
        self.leader_epoch += 1
        self.epochs = [known for known in self.epochs if known[1] < self.end] + [(self.leader_epoch, self.end)]

    def rebuild_epochs(self) -> None:
        """Know no more epochs than the batches name: so does a replica that was rebuilt from a compacted log."""
        self.epochs = []
        for entry in self.entries:
            if not self.epochs or self.epochs[-1][0] < entry.leader_epoch:
                self.epochs.append((entry.leader_epoch, entry.base))

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The newest epoch that is not newer than that one, and where it ends (KIP-101).

        Before the first epoch that is known there is nothing any more; of one that is to come nothing is known, -1.
        """
        at = bisect_right(self.epochs, epoch, key=lambda known: known[0])
        if at == 0:
            return epoch, self.epochs[0][1]
        if at < len(self.epochs):
            return self.epochs[at - 1][0], self.epochs[at][1]
        return (epoch, self.end) if self.epochs[-1][0] == epoch else (-1, -1)

    def truncate(self, offset: int) -> None:
        """Lose everything from there on; the rest is believed as a replica finds it on its disk."""
        del self.entries[self.index(offset) :]
        self.former = None
        self.end = self.entries[-1].last + 1 if self.entries else self.start
        self.removed = self.removed[: bisect_left(self.removed, self.end)]
        self.epochs = [(epoch, start) for epoch, start in self.epochs if start < self.end] or [self.epochs[0]]
        self.open, self.producers = {}, {}
        self.aborted = [done for done in self.aborted if done.marker < self.end]
        for entry in self.entries:
            self._recover(entry)
        for producer, first in self.open.items():
            for entry in self.entries[self.index(first) :]:
                if entry.producer == producer:
                    entry.outcome = None

    def _recover(self, entry: Entry) -> None:
        if entry.producer < 0:
            return
        state = self.producers.setdefault(entry.producer, ProducerState(entry.producer_epoch))
        if state.epoch != entry.producer_epoch:
            state.epoch, state.next, state.recent = entry.producer_epoch, 0, []
        if entry.marker:
            self.open.pop(entry.producer, None)
            return
        state.next = (entry.sequence + entry.last - entry.base + 1) % 2**31
        state.recent = [*state.recent, (entry.sequence, entry.base)][-_KEPT:]
        self.open.setdefault(entry.producer, entry.base)

    def delete_before(self, offset: int) -> None:
        """Retention: the log starts there now."""
        self.start = max(self.start, min(offset, self.stable_end))
        del self.entries[: self.index(self.start)]
        self.aborted = [done for done in self.aborted if done.marker >= self.start]


def batch_of(entry: Entry) -> Batch:
    """An entry as the product's own code reads it."""
    return Batch(Header._make(HEADER.unpack_from(entry.data)), memoryview(entry.data))


def contents(entry: Entry) -> list[Record]:
    """A batch's records."""
    if entry.records is None:
        entry.records = [(record.timestamp, record.body) for record in unpack(batch_of(entry), 0)]
    return entry.records


def placed(entry: Entry) -> list[tuple[int, Record]]:
    """The same, each with its offset."""
    offsets = range(entry.base, entry.last + 1) if entry.offsets is None else entry.offsets
    return list(zip(offsets, contents(entry), strict=True))


def seen(log: Log) -> list[tuple[int, Record]]:
    """The records that a read_committed consumer sees."""
    entries = [entry for entry in log.entries if entry.outcome and not entry.marker]
    return [record for entry in entries for record in placed(entry)]
