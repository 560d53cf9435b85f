"""The part of a Fetch that a read_committed reader may see (KIP-98, "Consumer").

The broker sends nothing past the last stable offset. It also sends the aborted transactions in the range, each by its
producer id and first offset: a producer's batches are dropped from there until its abort marker.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import CONTROL, DELETE_HORIZON, HEADER_SIZE, TRANSACTIONAL, Batch, split, split_data
from appliance.kafka.records.varint import read_varint

ABORT = 0
"""The type of the marker of an aborted transaction."""

_CONTROL_KEY = struct.Struct(">hh")


class AbortedTransaction(NamedTuple):
    """An aborted transaction in a Fetch response."""

    producer_id: int
    first_offset: int


def committed(batches: Iterable[Batch], aborted: Sequence[AbortedTransaction]) -> Iterator[Batch]:
    """The batches that hold committed records; markers and aborted batches are left out, by design."""
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    dropping: set[int] = set()
    for batch in batches:
        header = batch.header
        while waiting and waiting[-1].first_offset <= header.last_offset:
            dropping.add(waiting.pop().producer_id)
        if header.attributes & CONTROL:
            if marker(batch) == ABORT:
                dropping.discard(header.producer_id)
        elif not (header.attributes & TRANSACTIONAL and header.producer_id in dropping):
            yield batch


def visible(
    records: memoryview, aborted: Sequence[AbortedTransaction], position: int, stable_end: int
) -> tuple[list[Batch], int]:
    """The batches with committed records in a Fetch from ``position``, and the offset to continue from.

    Markers only matter as ends of aborted transactions: without these, none of them is parsed.
    """
    if not aborted:
        return split_data(records, position, stable_end)
    batches = list(split(records, stable_end=stable_end))
    return list(committed(batches, aborted)), max([position, *(each.header.last_offset + 1 for each in batches)])


def marker_times(records: memoryview) -> list[tuple[int, int]]:
    """The offset of each transaction marker in a Fetch, with the time in milliseconds at which the broker wrote it."""
    headers = (batch.header for batch in split(records))
    return [(header.base_offset, header.max_timestamp) for header in headers if header.attributes & CONTROL]


def marker(batch: Batch) -> int | None:
    """The type of a control record, from its key: version i16, type i16; None when compaction has emptied the batch."""
    if batch.header.records == 0:
        return None
    try:
        at = HEADER_SIZE
        _, at = read_varint(batch.data, at)  # length
        _, at = read_varint(batch.data, at + 1)  # attributes are one byte; timestamp delta
        _, at = read_varint(batch.data, at)  # offset delta
        size, at = read_varint(batch.data, at)
        if size < _CONTROL_KEY.size:
            raise BatchCorrupt(f"the control record at offset {batch.header.base_offset} has no type")
        _, kind = _CONTROL_KEY.unpack_from(batch.data, at)
    except (IndexError, struct.error) as error:
        raise BatchCorrupt(f"the control record at offset {batch.header.base_offset} is cut short") from error
    return int(kind)


class EndedTransaction(NamedTuple):
    """The records of a committed transaction in one partition, from offset ``first`` to ``last``.

    ``began`` is the earliest time of its batches, by the producer's clock, and ``ended`` that of its marker, by the
    broker's; both in milliseconds.
    """

    producer_id: int
    producer_epoch: int
    first: int
    last: int
    marker: int
    began: int
    ended: int


@dataclass(slots=True)
class EndedTransactions:
    """Takes the batches of a partition in order; ``found`` are the transactions with records among them."""

    found: list[EndedTransaction] = field(default_factory=list)
    _open: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    def take(self, batches: Iterable[Batch]) -> None:
        """Add the following batches."""
        for batch in batches:
            header = batch.header
            if header.attributes & CONTROL:
                span = self._open.pop(header.producer_id, None)
                # Compaction empties a marker after its aborted records.
                if span is not None and marker(batch) != ABORT:
                    ids = header.producer_id, header.producer_epoch
                    first, last, began = span
                    self.found.append(EndedTransaction(*ids, first, last, header.base_offset, began, _time(batch)))
            elif header.attributes & TRANSACTIONAL and header.records:
                first, _, began = self._open.get(header.producer_id, (header.base_offset, 0, _time(batch)))
                self._open[header.producer_id] = first, header.last_offset, min(began, _time(batch))


def _time(batch: Batch) -> int:
    """The time of its first record; of a compacted batch that of its newest one."""
    header = batch.header
    return header.max_timestamp if header.attributes & DELETE_HORIZON else header.base_timestamp
