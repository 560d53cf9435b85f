"""One side of a partition under verification: its records that are read and not yet compared."""

from collections.abc import Iterable
from dataclasses import dataclass

from appliance.clock import monotonic
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.records import placed, unpack
from appliance.logs.model.alignment import ANCHOR_RECORDS, Anchor, Search, anchor
from appliance.logs.model.span import Span
from appliance.logs.model.stream import Stream
from appliance.logs.reader import LogReader

_WAIT = 0.5
_ANCHOR_BYTES = 16 * 1024 * 1024
"""Most bytes read for the anchor of a log whose records share one timestamp."""
_SEARCHED_BYTES = 64 * 1024 * 1024
"""Number of bytes, from the anchor's own time on, in which it is searched."""


@dataclass(frozen=True, slots=True)
class AnchorPlace:
    """The offsets at which an anchor begins: all of it, or a prefix of it at the log's end; None: not found."""

    whole: int | None = None
    begun: int | None = None


class Side:
    """A stream and the reader that fills it.

    ``log`` is the span that the log had at the beginning. The source is read up to its end, and no further; the
    destination as far as it is needed, with patience until ``deadline`` when it has no more, by ``monotonic``.
    """

    def __init__(self, reader: LogReader, log: Span, deadline: float | None = None) -> None:
        self.log = log
        self.reader = reader
        self._deadline = deadline
        self.stream = Stream(log.start)

    async def more(self) -> bool:
        """True when there is a record to compare; continues reading when there is none yet."""
        while not self.stream:
            patience = 0.0 if self._deadline is None else self._deadline - monotonic()
            if not await self._read(min(max(patience, 0.0), _WAIT)) and patience <= 0:
                return False
        return True

    async def _read(self, wait: float = 0.0) -> bool:
        """Continue reading; True if there was anything to read, including markers."""
        before = self.reader.position
        if self._deadline is None and before >= self.log.end:
            return False
        batches = await self.reader.read(wait, self.log.end if self._deadline is None else 0)
        self.stream.append(batches if self._deadline is not None else self._within(batches))
        return self.reader.position > before

    async def count(self) -> int:
        """Number of records left up to the log's end, including the stream's."""
        return await self.count_between(self.stream.position, self.log.end)

    async def count_between(self, first: int, end: int) -> int:
        """Number of records in a range of offsets; raises as ``count``."""
        reader, records = self.reader.at(first), 0
        async for batches in reader.until(end, _WAIT):
            for batch in self._within(batches, end):
                whole = batch.header.base_offset >= first
                records += batch.header.records if whole else len(unpack(batch, first))
        return records

    async def anchor(self) -> Anchor:
        """The anchor of the records to compare, of which there is at least one."""
        first = anchor(self.stream.ahead(ANCHOR_RECORDS))
        while not first.complete and self.stream.size < _ANCHOR_BYTES and await self._read():
            first = anchor(self.stream.ahead(ANCHOR_RECORDS))
        return first

    def restart(self, offset: int) -> None:
        """Discard the read records, and continue from ``offset``."""
        self.reader = self.reader.at(offset)
        self.stream = Stream(offset)

    async def offset_at(self, timestamp: int) -> int | None:
        """See ``LogReader.offset_at``; from the log's start on."""
        return await self.reader.at(self.log.start).offset_at(timestamp)

    async def find(self, anchor: Anchor) -> AnchorPlace:
        """Search for the other side's anchor."""
        start = await self.offset_at(anchor.timestamp)
        if start is None:
            return AnchorPlace()
        search = Search(anchor)
        reader = self.reader.at(start)
        end = self.log.end if self._deadline is None else max(self.log.end, self.reader.position)
        size = 0
        async for batches in reader.until(end):
            for batch in self._within(batches, end):
                if search.feed(unpack(batch, start)):
                    return AnchorPlace(search.place)
                size += len(batch.data)
            if size >= _SEARCHED_BYTES:
                break
        return AnchorPlace(search.place, search.begun if reader.position >= end else None)

    def _within(self, batches: Iterable[Batch], end: int | None = None) -> list[Batch]:
        bound = self.log.end if end is None else end
        return [part for batch in batches if (part := _before(batch, bound))]


def _before(batch: Batch, bound: int) -> Batch | None:
    """The records of a batch before an offset: a part of a log may end within it."""
    if batch.header.last_offset < bound:
        return batch
    if batch.header.base_offset >= bound:
        return None
    records = [record for record in unpack(batch, 0) if record.offset < bound]
    return placed(records) if records else None
