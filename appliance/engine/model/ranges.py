"""A range of source offsets of one partition on its way through the SQL, its outcome, and the trials of ranges.

Every range ends by a mark, a row of its own, which every filter lets pass. A range whose mark has not arrived has no
outcome, however its stream ended: Spark often shows a clean end where a source, the SQL or a sibling has failed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing
from appliance.link.model.position import Position, Trial

ROOM_MAX = 8_192_000
"""The most bytes by which a record may grow."""

ROW_BYTES = 2 * 1024
"""Bytes of a record for each row that it counts as, beside its own. Rows that mean nothing follow it for the others."""

ROOM_BYTES = 2 * ROW_BYTES
"""Bytes by which it may grow, for each of them."""

WEIGHT_MAX = ROOM_MAX // ROOM_BYTES
"""The most rows that each record of a round counts as: as many as Spark gets at once."""

_PARTS = 16
"""Parts of a range in which a process has ended, each a trial of the next one."""

TRIES_MAX = 4
"""Trials of a record until it is stopped. Those of others end with it, where they share its Java: hence several."""


@dataclass(frozen=True, slots=True)
class Range:
    """The committed records from offset ``start`` up to ``end``, in batches, some of which may begin before or end
    after it.

    ``limit`` is the largest batch of the copy in bytes. With ``keeps_codec`` its outcome has the codec of the first
    batch that has one, otherwise none.
    """

    partition: Partition
    start: int
    end: int
    batches: tuple[Outgoing, ...]
    limit: int
    keeps_codec: bool = True

    @property
    def bytes(self) -> int:
        """The size of its batches."""
        return sum(len(batch.data) for batch in self.batches)

    @property
    def records(self) -> int:
        """Number of records in it."""
        return sum(length for _, length in self._runs())

    @property
    def first(self) -> int:
        """The offset of its first record, of at least one."""
        return next(self._runs())[0]

    def __str__(self) -> str:
        return f"{self.partition} offsets {self.start} to {self.end - 1}"

    def halves(self) -> "tuple[Range, ...]":
        """It in two, each with at least one of its records; or as it is if it has fewer than two."""
        before = self.records // 2
        if not before:
            return (self,)
        for first, length in self._runs():
            if before < length:
                return self.divide(first + before)
            before -= length
        raise AssertionError("the runs have fewer records than counted")

    def divide(self, at: int) -> "tuple[Range, Range]":
        """The ranges before and from an offset on."""
        left = tuple(batch for batch in self.batches if batch.first_offset < at)
        right = tuple(batch for batch in self.batches if batch.next_offset > at)
        return replace(self, end=at, batches=left), replace(self, start=at, batches=right)

    def _runs(self) -> Iterator[tuple[int, int]]:
        """The runs of its records without holes: first offset and length."""
        for batch in self.batches:
            for first, length in batch.runs or ((batch.first_offset, batch.records),):
                begin, end = max(first, self.start), min(first + length, self.end)
                if begin < end:
                    yield begin, end - begin


@dataclass(frozen=True, slots=True)
class Failure:
    """A record that cannot pass; ``reason`` is empty until it is known. ``damaged``: its bytes cannot be read."""

    offset: int
    reason: str = ""
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a range: the batches to write, and where it ends by now, before its ``end`` if a record stops it.

    ``failures`` are records that failed; only the last one stops the range, if ``stop`` is set.
    """

    batches: tuple[Outgoing, ...]
    next_offset: int
    filtered: int
    failures: tuple[Failure, ...] = ()
    stop: Failure | None = None


class Trying(NamedTuple):
    """The trials of a process: of ``size`` offsets each, from an offset up to another; ``tries`` numbers them.

    The first range that the SQL gets in a process is written down before, because a record may end the process. The
    trial stays with the position at its start until copying passes it: it is found there if the process, or its Spark,
    has ended in it. The next process tries it alone, and each one after that a part of it, down to one record.
    """

    until: int
    size: int
    tries: int = 1
    start: int = 0

    @classmethod
    def of(cls, position: Position, end: int) -> Self:
        """Those of what was read of a partition up to ``end``."""
        start, trial = position.next_offset, position.trial
        if trial is None or trial.start != start:
            return cls(end, end - start, 1, start)
        size = trial.end - start
        if size == 1 or trial.tries == 1:
            return cls(trial.end, size, trial.tries + 1, start)
        return cls(trial.end, -(-size // _PARTS), 2, start)

    def trial(self, start: int, end: int) -> Trial:
        """The one at an offset, of what was read up to ``end``: all of that past the last trial."""
        return Trial(start, min(start + self.size, self.until, end) if start < self.until else end, self.tries)
