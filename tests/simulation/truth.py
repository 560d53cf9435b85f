"""The committed records of source partitions, against which copies are held."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulation.log import Log, Record


@dataclass(slots=True)
class Before:
    """A log as it was before it was truncated at ``cut``; its leaders since then have at least that epoch.

    Below ``same`` nothing has changed: a marker that is lost opens its transaction again.
    """

    cut: int
    same: int
    epoch: int
    end: int
    offsets: list[int]
    records: list[Record]

    def sources(self, copied: Sequence[Record], first: int, end: int) -> Sequence[int] | None:
        """The offsets of these records, if they are those from ``first`` up to ``end``; else None."""
        begin, after = bisect_left(self.offsets, first), bisect_left(self.offsets, end)
        return self.offsets[begin:after] if self.records[begin:after] == copied else None


@dataclass(slots=True)
class Truth:
    """The committed records of a source partition, as far as they are decided, by offset; compaction takes none.

    Below ``agreed`` the link has taken what the log holds, but for declared gaps: it is the position, or below it where
    the log was truncated; None before the first position.
    """

    log: Log
    begin: int = 0
    offsets: list[int] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    agreed: int | None = None
    before: list[Before] = field(default_factory=list)
    """The log before each of its truncations: what was fetched then may be copied a little later."""
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

    def truncated(self, end: int) -> None:
        """The log has lost everything from where it ends now; it ended at ``end``."""
        log, same = self.log, min(self.log.stable_end, self._next)
        before = Before(log.end, same, log.leader_epoch + 1, end, list(self.offsets), list(self.records))
        self.before.append(before)
        self._next = same
        at = bisect_left(self.offsets, same)
        del self.offsets[at:], self.records[at:]
        if self.agreed is not None:
            self.agreed = min(self.agreed, log.end)

    def chosen(self, offset: int, epoch: int) -> None:
        """The operator has the link go on from there; ``epoch`` is the leader's of what lies before, as it was read."""
        cuts = [before.cut for before in self.before if 0 <= epoch < before.epoch]
        self.agreed = min([offset, *cuts])

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

    def moved(self, copied: Sequence[Record], first: int, end: int, epoch: int) -> Sequence[int] | None:
        """The offsets of the records by which a position moves on, read up to that leader epoch; None if it must not.

        What was fetched before a truncation may be copied after it. What the log holds since then must not be joined to
        what it has lost.
        """
        agreed = first if self.agreed is None else self.agreed
        self.agreed = agreed
        for number, before in reversed(list(enumerate(self.before))):
            if end <= before.same or epoch >= before.epoch or end > before.end:
                continue
            if (found := before.sources(copied, first, end)) is not None:
                if agreed >= first:
                    self.agreed = min(end, *(each.cut for each in self.before[number:]))
                return found
        if end == first:
            return self.sources(copied, first, end)
        if agreed < first:
            return None
        self.agreed = end
        return self.sources(copied, first, end)
