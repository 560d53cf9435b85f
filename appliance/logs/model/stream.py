"""One side of a partition: committed batches in order, taken whole if possible, or record by record."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import HEADER_SIZE, Batch
from appliance.kafka.records.decompression import LIMIT
from appliance.kafka.records.lz4 import BLOCK_BYTES
from appliance.kafka.records.rebuild import compiled_reader
from appliance.kafka.records.records import Record, unpack

Contents = Sequence[tuple[object, ...]]


class Decoded(NamedTuple):
    """The records of a batch: the compared parts of each, and their offsets.

    The parts have one of two forms, which must not be compared with each other.
    """

    contents: Contents
    offsets: Sequence[int]


Decode = Callable[[Batch], Decoded | None]


def compiled(batch: Batch) -> Decoded | None:
    """Timestamp, key, value and headers, by aiokafka's compiled reader; None where it will not read the batch.

    It is four times as fast as ``plain``, but takes header keys for UTF-8, which nobody promised.
    """
    contents: list[tuple[object, ...]] = []
    offsets: list[int] = []
    try:
        reader, _ = compiled_reader(batch, memoryview(bytearray(BLOCK_BYTES)))
        if without_holes := _offsets_without_holes(batch):
            return Decoded([(r.timestamp, r.key, r.value, r.headers) for r in reader], without_holes)
        for record in reader:
            contents.append((record.timestamp, record.key, record.value, record.headers))
            offsets.append(record.offset)
    except Exception:  # the library has a dozen ways to say that it will not read something
        return None
    return Decoded(contents, offsets)


def plain(batch: Batch) -> Decoded:
    """Timestamp and body, whatever is in it.

    Raises:
        BatchCorrupt: the records do not decompress, or do not fit their lengths or the header's count.
    """
    records = unpack(batch, 0)
    offsets = _offsets_without_holes(batch) or [record.offset for record in records]
    return Decoded([(record.timestamp, record.body) for record in records], offsets)


def _offsets_without_holes(batch: Batch) -> range:
    """The offsets of a batch's records, by its header alone; empty if it has holes."""
    header = batch.header
    has_holes = header.records != header.last_offset_delta + 1
    return range(header.base_offset, header.base_offset + (0 if has_holes else header.records))


class Stream:
    """The records of one side from offset ``start`` on, first in, first out."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._end = start
        self._batches: deque[Batch] = deque()
        self.taken = 0
        """The number of records of the next batch that are taken already."""
        self._decoded: dict[Decode, Decoded | None] = {}

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def size(self) -> int:
        """Bytes of the batches that wait."""
        return sum(len(batch.data) for batch in self._batches)

    @property
    def position(self) -> int:
        """The offset of the next record; past the last taken batch when none waits."""
        if not self._batches:
            return self._end
        return self.offsets(1)[0] if self.taken else self._batches[0].header.base_offset

    def append(self, batches: Iterable[Batch]) -> None:
        """Batches that follow, in order.

        Raises:
            BatchCorrupt: ``start`` lies within one whose records do not decompress or do not fit.
        """
        for batch in batches:
            if batch.header.records <= 0 or batch.header.last_offset < self.start:
                continue
            self._batches.append(batch)
            if batch.header.base_offset < self.start:  # it is the first one
                self.take(bisect_left(self.offsets(batch.header.records), self.start))

    def whole(self) -> Batch | None:
        """The next batch, when none of its records is taken."""
        return self._batches[0] if self._batches and not self.taken else None

    def decoded(self, decode: Decode) -> Decoded | None:
        """The records of the next batch, including taken ones; decoded once."""
        if decode not in self._decoded:
            self._decoded[decode] = decode(self._batches[0])
        return self._decoded[decode]

    def offsets(self, count: int) -> Sequence[int]:
        """The offsets of the next records of the next batch; a range if they follow each other."""
        offsets: Sequence[int] = _offsets_without_holes(self._batches[0])
        if not offsets:
            decoded = self.decoded(compiled) or self.decoded(plain)
            assert decoded is not None
            offsets = decoded.offsets
        return offsets[self.taken : self.taken + count]

    def take(self, count: int) -> Batch | None:
        """Take this many records of the next batch, which holds as many; the batch when they were its last ones."""
        self.taken += count
        batch = self._batches[0]
        if self.taken < batch.header.records:
            return None
        self._batches.popleft()
        self.taken = 0
        self._decoded.clear()
        self._end = batch.header.last_offset + 1
        return batch

    def ahead(self, limit: int) -> list[Record]:
        """The next records, as many as wait, up to ``limit`` or about 64 MiB; none is taken."""
        records: list[Record] = []
        for number, batch in enumerate(self._batches):
            try:
                those = unpack(batch, 0)[self.taken if number == 0 else 0 :]
            except BatchCorrupt:  # its bytes stand for its records: those of a raw copy are the same
                those = [Record(batch.header.base_offset, batch.header.max_timestamp, bytes(batch.data[HEADER_SIZE:]))]
            records += those[: limit - len(records)]
            if len(records) >= limit or sum(len(record.body) for record in records) >= LIMIT:
                break
        return records
