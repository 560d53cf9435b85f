"""The committed records of a lane's log in the positions topic, each with its writer and its commit time. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from appliance.grouping import grouped
from appliance.kafka.records.batch import CONTROL, Batch, verify
from appliance.kafka.records.committed import AbortedTransaction, committed
from appliance.kafka.records.decompression import within_memory
from appliance.kafka.records.records import Record, unpack

DAY_MS = 86_400_000
ANY_DAY = -1


class Entry(NamedTuple):
    """A committed record; ``committed`` is the time of its commit marker by the broker's clock, in milliseconds.

    Where compaction has removed the marker, it is the lane's time just before the commit.
    """

    record: Record
    committed: int
    producer_id: int
    producer_epoch: int

    @property
    def day(self) -> int:
        """The day of the commit, since 1970."""
        return self.committed // DAY_MS

    @property
    def producer(self) -> tuple[int, int]:
        """The id and the epoch of the producer that has written it."""
        return self.producer_id, self.producer_epoch


@dataclass(frozen=True, slots=True)
class LogRange:
    """The entries of a lane from one offset of its log up to ``following``.

    ``hole_at`` is the offset before which compaction has last removed something; -1 if it has removed nothing.
    ``leader_epoch`` is at least that of the last batch before ``following``; -1 if there is none.
    """

    entries: Sequence[Entry]
    following: int
    hole_at: int = -1
    leader_epoch: int = -1

    @property
    def first_day(self) -> int:
        """The day of the first entry."""
        return self.entries[0].day if self.entries else ANY_DAY

    def before(self, offset: int) -> "LogRange":
        """The part of it before an offset."""
        if offset >= self.following:
            return self
        entries = [entry for entry in self.entries if entry.record.offset < offset]
        return LogRange(entries, offset, min(self.hole_at, offset), self.leader_epoch)


def log_range(fetched: Iterable[Batch], aborted: Sequence[AbortedTransaction], position: int) -> LogRange:
    """The range of the batches of a Fetch from ``position``; the log begins at ``position``, or continues there."""
    (batches, _), following, hole_at = within_memory(list(fetched), position), position, -1
    for batch in batches:
        header = batch.header
        if header.base_offset > following or header.records <= header.last_offset_delta:
            hole_at = header.last_offset + 1
        following = max(following, header.last_offset + 1)
    ends = _Markers(batches)
    entries = [
        Entry(record, ends.time(batch, record.timestamp), batch.header.producer_id, batch.header.producer_epoch)
        for batch in committed(batches, aborted)
        for record in _verified(batch, position)
    ]
    return LogRange(entries, following, hole_at, batches[-1].header.leader_epoch if batches else -1)


def _verified(batch: Batch, position: int) -> list[Record]:
    if batch.header.last_offset < position:
        return []
    verify(batch)
    return unpack(batch, position)


class _Markers:
    """The markers in a Fetch, by producer id, in the log's order."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        headers = (batch.header for batch in reversed(batches))
        markers = (each for each in headers if each.attributes & CONTROL and each.records)
        self._by_producer = grouped((each.producer_id, (each.base_offset, each.max_timestamp)) for each in markers)

    def time(self, batch: Batch, otherwise: int) -> int:
        """The time of the marker that ends a batch's transaction; batches are asked for in the log's order."""
        markers = self._by_producer.get(batch.header.producer_id, [])
        while markers and markers[-1][0] < batch.header.base_offset:
            markers.pop()
        return markers[-1][1] if markers else otherwise
