"""The records of two logs, paired one by one: the n-th of the source with the n-th of the copy, or none at all."""

from typing import NamedTuple, cast

from appliance.kafka.records.batch import Batch
from appliance.kafka.records.records import Record, unpack
from appliance.logs.model.comparison import same
from appliance.logs.model.stream import Contents, Stream


class Run(NamedTuple):
    """Records that follow each other in both logs: the offsets of the first, and their number."""

    source: int
    copy: int
    length: int


class Pairing:
    """Pairs two streams, and removes paired records from both; ``differs_at`` are the offsets of the first difference.

    Where both sides have the same batch, no record of it is decoded.
    """

    def __init__(self, source: Stream, copy: Stream) -> None:
        self.differs_at: tuple[int, int] | None = None
        self._source = source
        self._copy = copy

    def advance(self) -> list[Run]:
        """Pair until one of the streams is empty, or records differ.

        Raises:
            BatchCorrupt: the records of a batch do not decompress, or do not fit their lengths or count.
        """
        runs: list[Run] = []
        while self._source and self._copy and self.differs_at is None:
            runs += self._whole_batches() or self._records()
        return runs

    def _whole_batches(self) -> list[Run]:
        ours, theirs = self._source.whole(), self._copy.whole()
        if ours is None or theirs is None or not (_is_dense(ours) and _is_dense(theirs) and same(ours, theirs)):
            return []
        count = ours.header.records
        self._take(count)
        return [Run(ours.header.base_offset, theirs.header.base_offset, count)]

    def _records(self) -> list[Run]:
        ours = _records_of(self._source)
        theirs = _records_of(self._copy)
        runs = []
        for source, copy in zip(ours, theirs, strict=False):
            if source[1:] != copy[1:]:
                self.differs_at = source.offset, copy.offset
                break
            runs.append(Run(source.offset, copy.offset, 1))
        if runs:
            self._take(len(runs))
        return runs

    def _take(self, count: int) -> None:
        self._source.take(count)
        self._copy.take(count)


def _is_dense(batch: Batch) -> bool:
    return batch.header.records == batch.header.last_offset_delta + 1


def _records_of(stream: Stream) -> list[Record]:
    """The remaining records of the next batch."""
    return cast("list[Record]", stream.contents(_located))[stream.taken :]


def _located(batch: Batch) -> Contents:
    return unpack(batch, 0)
