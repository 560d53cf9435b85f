"""The committed records of source partitions, against which copies are held."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulation.log import Log, Record


@dataclass(slots=True)
class Truth:
    """The committed records of a source partition, as far as they are decided, by offset; compaction takes none."""

    log: Log
    begin: int = 0
    offsets: list[int] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    _next: int = 0
    """The first offset that is not looked at yet."""

    def learn(self) -> None:
        """Take in what is decided by now; before anything of it is deleted."""
        log = self.log
        for entry in log.entries[log.index(self._next) :]:
            if entry.base >= log.stable_end:
                break
            self._next = entry.last + 1
            if entry.records is not None and entry.outcome:
                self.offsets += range(entry.base, entry.last + 1)
                self.records += entry.records

    def between(self, first: int, end: int) -> list[Record]:
        """The committed records of these offsets."""
        return self.records[bisect_left(self.offsets, first) : bisect_left(self.offsets, end)]

    def sources(self, copied: Sequence[Record], first: int, end: int) -> Sequence[int] | None:
        """The offsets of these records, if they are those from ``first`` up to ``end``; else None.

        Some that compaction took before a Fetch may be missing.
        """
        begin, after = bisect_left(self.offsets, first), bisect_left(self.offsets, end)
        offsets, expected = self.offsets[begin:after], self.records[begin:after]
        if copied == expected:
            return offsets
        gone, found = self.log.passed_over, []
        for offset, record in zip(offsets, expected, strict=True):
            if len(found) < len(copied) and copied[len(found)] == record:
                found.append(offset)
            elif offset not in gone:
                return None
        return found if len(found) == len(copied) else None
