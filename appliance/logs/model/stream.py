"""One side of a partition: committed batches in order, taken whole if possible, or record by record."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import HEADER_SIZE, Batch
from appliance.kafka.records.decompression import LIMIT
from appliance.kafka.records.lz4 import BLOCK_BYTES
from appliance.kafka.records.rebuild import compiled_reader
from appliance.kafka.records.records import Record, unpack

Contents = Sequence[tuple[object, ...]]
"""The compared parts of each record of a batch, in one of two forms that must not be compared with each other."""

Decode = Callable[[Batch], Contents | None]


def compiled(batch: Batch) -> Contents | None:
    """Timestamp, key, value and headers, by aiokafka's compiled reader; None where it will not read the batch.

    It is four times as fast as ``plain``, but takes header keys for UTF-8, which nobody promised.
    """
    try:
        reader, _ = compiled_reader(batch, memoryview(bytearray(BLOCK_BYTES)))
        return [(r.timestamp, r.key, r.value, r.headers) for r in reader]
    except Exception:  # the library has a dozen ways to say that it will not read something
        return None


def plain(batch: Batch) -> Contents:
    """Timestamp and body, whatever is in it.

    Raises:
        BatchCorrupt: the records do not decompress, or do not fit their lengths or the header's count.
    """
    return [(record.timestamp, record.body) for record in unpack(batch, 0)]


class Stream:
    """The records of one side from offset ``start`` on, first in, first out."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._end = start
        self._batches: deque[Batch] = deque()
        self.taken = 0
        """The number of records of the next batch that are taken already."""
        self._decoded: dict[Decode, Contents | None] = {}

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
        if not self.taken:
            return self._batches[0].header.base_offset
        return unpack(self._batches[0], 0)[self.taken].offset

    def append(self, batches: Iterable[Batch]) -> None:
        """Batches that follow, in order.

        Raises:
            BatchCorrupt: ``start`` lies within one whose records do not decompress or do not fit.
        """
        for batch in batches:
            if batch.header.records == 0:
                continue
            before = self._before_start(batch)
            if before < batch.header.records:
                if not self._batches:
                    self.taken = before
                self._batches.append(batch)

    def whole(self) -> Batch | None:
        """The next batch, when none of its records is taken."""
        return self._batches[0] if self._batches and not self.taken else None

    def contents(self, decode: Decode) -> Contents | None:
        """The records of the next batch, including taken ones; decoded once."""
        if decode not in self._decoded:
            self._decoded[decode] = decode(self._batches[0])
        return self._decoded[decode]

    def offsets(self, count: int) -> Sequence[int]:
        """The offsets of the next records of the next batch; a range if they follow each other."""
        header = self._batches[0].header
        if header.records == header.last_offset_delta + 1:
            first = header.base_offset + self.taken
            return range(first, first + count)
        return [record.offset for record in unpack(self._batches[0], 0)[self.taken : self.taken + count]]

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

    def _before_start(self, batch: Batch) -> int:
        header = batch.header
        if header.base_offset >= self.start:
            return 0
        if header.last_offset < self.start:
            return header.records
        return header.records - len(unpack(batch, self.start))
