"""Turn committed batches into batches to write: raw if possible, rebuilt otherwise.

A batch goes raw, its records neither decompressed nor decoded, unless

- it has holes, since a producer's batch must count lastOffsetDelta + 1 records;
- it starts before the position, so that its first records are copied already, or only a part of it is to be written;
- it is larger than the destination allows, and is split;
- it has LogAppendTime, which no producer may set: each record then carries that time as its own;
- it is one of several tiny ones in a row.

Consecutive rebuilt records become one batch, since a Produce takes one a partition.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import CODEC_MASK, LOG_APPEND_TIME, NO_END, Batch, split, verify
from appliance.kafka.records.decompression import LIMIT
from appliance.kafka.records.rebuild import Runs, rebuild, within
from appliance.kafka.records.records import Record, unpack

TINY_RECORDS = 32
"""Number of records up to which rebuilding costs less than a Produce of its own."""

UNLIMITED = 2**31 - 1

COALESCED_BYTES = 256 * 1024
"""A coalesced batch takes up to this many bytes of its parts; below every sensible max.message.bytes."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A batch ready to be restamped and sent.

    ``first_offset`` and ``next_offset`` are the source's: of the first record and past the last one; so are ``runs``,
    which are empty where the records' offsets have no holes. ``append_time``: the source's broker set the timestamps.
    ``memory`` is about what the records took uncompressed, 0 if they were left as they are.
    """

    data: memoryview | bytes
    records: int
    first_offset: int
    next_offset: int
    max_timestamp: int
    raw: bool
    runs: Runs = ()
    append_time: bool = False
    memory: int = 0

    @property
    def offsets(self) -> Sequence[int]:
        """The source offset of each record."""
        if not self.runs:  # its header may count more records than there is memory
            return range(self.first_offset, self.first_offset + self.records)
        return [at for first, length in self.runs for at in range(first, first + length)]

    def refused(self, number: int | None) -> range:
        """The source offset of its record of this number; without one, from its first to its last record."""
        offsets = self.offsets[slice(number, None if number is None else number + 1)] or self.offsets
        return range(offsets[0], offsets[-1] + 1)


def records_at(batch: Outgoing, selection: Container[int]) -> list[Record]:
    """The records of a batch with these source offsets."""
    (whole,) = split(batch.data)
    records = zip(batch.offsets, unpack(whole, 0), strict=True)
    return [record._replace(offset=at) for at, record in records if at in selection]


def codec_of(data: bytes | memoryview) -> int:
    """The codec of a batch, as in its attributes."""
    (batch,) = split(data)
    return batch.header.attributes & CODEC_MASK


def outgoing(batches: Iterable[Batch], position: int, limit: int = UNLIMITED, end: int = NO_END) -> Iterator[Outgoing]:
    """Turn the committed batches of one partition, offsets ``position`` to ``end``, into those to write, in order.

    ``limit`` is the destination topic's max.message.bytes.
    """
    selection = range(position, end)
    run: list[Batch] = []
    run_size = 0
    for batch in batches:
        header = batch.header
        if header.records == 0 or header.last_offset < position or header.base_offset >= end:
            continue
        raw = header.records > TINY_RECORDS and _can_go_raw(batch, selection, limit)
        if run and (raw or not _joins(run[-1], batch) or run_size + len(batch.data) > COALESCED_BYTES):
            yield from _written(run, selection, limit)
            run, run_size = [], 0
        verify(batch)
        if raw:
            yield _raw(batch)
        else:
            run.append(batch)
            run_size += len(batch.data)
    if run:
        yield from _written(run, selection, limit)


def _joins(before: Batch, after: Batch) -> bool:
    return not (before.header.attributes ^ after.header.attributes) & (CODEC_MASK | LOG_APPEND_TIME)


def _written(run: list[Batch], selection: range, limit: int) -> Iterator[Outgoing]:
    """The batches of a run: rebuilt as one if that takes little memory, else each by itself."""
    if len(run) == 1 and _can_go_raw(run[0], selection, limit):
        yield _raw(run[0])
        return
    try:
        yield from _rebuilt(run, selection, limit)
    except BatchCorrupt:
        if len(run) == 1:
            raise
        for batch in run:
            yield from _written([batch], selection, limit)


def _raw(batch: Batch) -> Outgoing:
    header = batch.header
    records, first = header.records, header.base_offset
    return Outgoing(batch.data, records, first, first + records, header.max_timestamp, raw=True)


def _rebuilt(run: list[Batch], selection: range, limit: int) -> Iterator[Outgoing]:
    rebuilt = rebuild(run, selection, LIMIT // 16 if len(run) > 1 else LIMIT)
    if rebuilt is None:
        return
    parts = [rebuilt] if len(rebuilt.data) <= limit else list(within(run, selection, limit))
    ends = [*(part.first_offset for part in parts[1:]), min(run[-1].header.last_offset + 1, selection.stop)]
    append_time = bool(run[0].header.attributes & LOG_APPEND_TIME)
    for part, end in zip(parts, ends, strict=True):
        numbers = part.records, part.first_offset, end, part.max_timestamp
        yield Outgoing(part.data, *numbers, False, part.runs, append_time, part.memory)


def _can_go_raw(batch: Batch, selection: range, limit: int) -> bool:
    header = batch.header
    return (
        selection.start <= header.base_offset <= header.last_offset < selection.stop
        and header.records == header.last_offset_delta + 1
        and len(batch.data) <= limit
        and not header.attributes & LOG_APPEND_TIME
    )
