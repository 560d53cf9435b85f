"""A range of source offsets of one partition on its way through the SQL, and its outcome.

Every range ends by a mark, a row of its own, which every filter lets pass. A range whose mark has not arrived has no
outcome, however its stream ended: Spark often shows a clean end where a source, the SQL or a sibling has failed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing

ROOM_MAX = 8_192_000
"""The most bytes by which a record may grow."""

ROW_BYTES = 2 * 1024
"""Bytes of a record for each row that it counts as, beside its own. Rows that mean nothing follow it for the others."""

ROOM_BYTES = 2 * ROW_BYTES
"""Bytes by which it may grow, for each of them."""

WEIGHT_MAX = ROOM_MAX // ROOM_BYTES
"""The most rows that each record of a round counts as: as many as Spark gets at once."""


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
                return self.divided(first + before)
            before -= length
        raise AssertionError("the runs have fewer records than counted")

    def divided(self, at: int) -> "tuple[Range, Range]":
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
