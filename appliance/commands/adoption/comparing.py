"""Compares the logs of a partition, as far back as it takes to see where MirrorMaker 2 has stopped.

The source is read from some records before the committed offset on, and the copy from its first record on that is not
older than the oldest of these. So whatever MirrorMaker 2 has copied of them, and however often, is in that window of
the copy. The source's window begins early enough that no record before it has a time as new: then no copy in the
window is that of an older record that looks like one of them. Where retention has deleted older records, and where the
copy has the broker's own times, such records may exist; then the comparison begins with a record that both windows
hold once. If the copy holds something there that the source does not, more of the source is read.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from appliance.commands.adoption.model.alignment import Aligned, Alignment, Originals
from appliance.commands.adoption.model.newest import KeyedRecord, NewestCopies, newest_held
from appliance.commands.adoption.model.plan import Allowed, Beginning, Logs, of_compared, of_newest, without_reading
from appliance.errors import PartitionStopped
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.records import Record, key_and_value, unpack
from appliance.logs.model.alignment import fingerprint
from appliance.logs.reader import LogReader

_PURPOSE = "adopt"
_BEFORE = 1000
"""Number of source offsets before the committed one, or more records than the copy has, that are read at first."""
_GROWTH = 10
_LARGEST = 1_000_000
"""Most records of a copy that are compared, unless the operator asks for more."""
_WAIT = 0.5

Add = Callable[[Record], None]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of the comparison of a partition: ``whole`` from the source's first record on.

    ``timed``: the copy has the source's timestamps; ``compacted``: only the newest record of each key counts. The
    source's open transactions may end until ``deadline``, in the event loop's time.
    """

    allowed: Allowed
    deadline: float
    whole: bool = False
    timed: bool = True
    compacted: bool = False


class _TooLarge(PartitionStopped):
    """There is more to compare than fits into memory without a word."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The source's records from offset ``start`` on; their copies are not before offset ``at`` of the copy."""

    originals: Originals
    start: int
    at: int


@dataclass(frozen=True, slots=True)
class Comparing:
    """The comparison of one partition."""

    source: KafkaCluster
    destination: KafkaCluster
    logs: Logs
    terms: Terms

    async def beginning(self) -> Beginning:
        """The offset at which copying goes on, or the reason against it; PartitionStopped if that cannot be told."""
        if decided := without_reading(self.logs, self.terms.allowed):
            return decided
        if self.terms.compacted:
            return await self._of_newest()
        before, best = _BEFORE, None
        while True:
            try:
                window = await self._window(self._start(before))
            except _TooLarge:
                if best is None:
                    raise
                return best
            first = await self._first(window)
            alignment = await self._aligned(window, first)
            best = of_compared(self.logs, window.originals, alignment, self.terms.allowed, first)
            certain = alignment.count and not alignment.unknown and (alignment.begin == first or self.logs.copy.start)
            if certain or window.start == self.logs.source.start:
                return best
            before *= _GROWTH

    def _start(self, before: int) -> int:
        """The source offset from which the logs are compared at first."""
        start, committed = self.logs.source.start, self.logs.committed
        everything = committed is None or self.terms.whole or not self.terms.timed
        return start if everything or committed is None else max(start, committed - before)

    async def _window(self, start: int) -> "_Window":
        """The window of the source from an offset on, or from an earlier one."""
        while True:
            originals = Originals()

            def aborted(record: Record, into: Originals = originals) -> None:
                into.aborted.add(self._print(record))

            def add(record: Record, into: Originals = originals) -> None:
                into.add(record.offset, self._print(record))

            at, oldest = await self._read_source(start, add, aborted)
            earlier = start
            if oldest is not None and self.terms.timed:
                log = LogReader(self.source, self.logs.replica.source, _PURPOSE, self.logs.source.start)
                since = await log.offset_at(oldest)
                earlier = start if since is None else min(since, start)
            if earlier == start:
                return _Window(originals, start, at)
            start = earlier

    async def _first(self, window: "_Window") -> int:
        """The index of the record with which the comparison begins."""
        if window.start > self.logs.source.start or not self.logs.source.start:
            return 0
        counts: Counter[bytes] = Counter()

        def count(record: Record) -> None:
            if window.originals.places(fingerprint_of_record := self._print(record)):
                counts[fingerprint_of_record] += 1

        await self._read_copy(window.at, count)
        first = window.originals.first_single(counts)
        if first is None:
            name = str(self.logs.replica.copy)
            what = f"no record of {name} can be told from the others, and from those that the source has deleted"
            raise PartitionStopped(
                f"{what}: adopt the other topics by --topic, and choose by `appliance resume --from`"
            )
        return first

    async def _aligned(self, window: "_Window", first: int) -> Aligned:
        alignment = await self._fed(window.at, Alignment(window.originals, first))
        aligned = alignment.finish()
        if not aligned.count and alignment.lowest is not None and alignment.lowest > first:
            aligned = (await self._fed(window.at, Alignment(window.originals, alignment.lowest))).finish()
        return aligned

    async def _fed(self, at: int, alignment: Alignment) -> Alignment:
        await self._read_copy(at, lambda record: alignment.feed(record.offset, self._print(record)))
        return alignment

    async def _of_newest(self) -> Beginning:
        originals: list[KeyedRecord] = []
        copies = NewestCopies()

        def add(record: Record) -> None:
            key, value = key_and_value(record.body)
            originals.append(KeyedRecord(record.offset, key or b"", self._print(record), value is None))

        def add_copy(record: Record) -> None:
            copies.feed(key_and_value(record.body)[0] or b"", self._print(record))

        at, _ = await self._read_source(self._start(_BEFORE), add, lambda _: None)
        await self._read_copy(at, add_copy)
        return of_newest(self.logs, originals, newest_held(originals, copies), self.terms.allowed)

    async def _read_source(self, start: int, add: Add, add_aborted: Add) -> tuple[int, int | None]:
        """Read more records than the copy can hold; its offset from which it may hold them, and the oldest time."""
        reader = LogReader(self.source, self.logs.replica.source, _PURPOSE, start)
        oldest, count, at = None, 0, self.logs.copy.end
        while reader.position < self.logs.source.end and (not count or count < self.logs.copy.end - at + _BEFORE):
            before, records = oldest, await self._read_decided(reader)
            for batch, adds in [*((each, add) for each in records), *((each, add_aborted) for each in reader.aborted)]:
                for record in unpack(batch, start):
                    if record.offset < self.logs.source.end:
                        adds(record)
                        count += 1
                        oldest = record.timestamp if oldest is None else min(oldest, record.timestamp)
            if oldest is not None and oldest != before:
                at = await self._copied_since(oldest)
            if not self.terms.whole and self.logs.copy.end - at > _LARGEST:
                raise _TooLarge(
                    f"{self.logs.copy.end - at} records of the copy must be compared, since so many are not older than "
                    f"one of the source's from offset {start} on: --whole does it, with some 300 bytes for each"
                )
        return at, oldest

    async def _read_decided(self, reader: LogReader) -> list[Batch]:
        """Read the source's next batches, once their transactions have ended."""
        loop, before = asyncio.get_running_loop(), reader.position
        while True:
            records = await reader.read(_WAIT)
            if reader.position > before:
                return records
            if loop.time() > self.terms.deadline:
                text = f"{reader} of the source has an open transaction at offset {reader.position}"
                raise PartitionStopped(f"{text}: MirrorMaker 2 may have copied of it: end it, or give it more --wait")

    async def _copied_since(self, timestamp: int) -> int:
        """The copy's first offset with a record that is not older, its end if there is none."""
        log = self.logs.copy
        if not self.terms.timed:
            return log.start
        offset = await LogReader(self.destination, self.logs.replica.copy, _PURPOSE, log.start).offset_at(timestamp)
        return log.end if offset is None else offset

    async def _read_copy(self, at: int, add: Add) -> None:
        """Read the copy from an offset to its end."""
        reader = LogReader(self.destination, self.logs.replica.copy, _PURPOSE, at)
        async for batches in reader.until(self.logs.copy.end):
            for batch in batches:
                for record in unpack(batch, at):
                    if record.offset < self.logs.copy.end:
                        add(record)

    def _print(self, record: Record) -> bytes:
        return fingerprint(record if self.terms.timed else record._replace(timestamp=0))
