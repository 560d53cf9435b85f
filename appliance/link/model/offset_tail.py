"""A growing range of a partition's offset map: within a position record it is the map's tail.

It covers the source offsets from ``source_from`` up to but without ``source_to``, and those of the copy likewise, both
completely: a source offset outside all runs has no copy, and a copy's offset outside all runs holds none.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from appliance.errors import BatchCorrupt
from appliance.kafka.records.outgoing import Outgoing
from appliance.link.model.offset_runs import Group, merge, pack_group, unpack_groups

_GROUP_BYTES = 40
"""Most bytes of a packed group: four varints."""


class OffsetTail(NamedTuple):
    """A range; ``settled`` are its packed groups except the last, which ends at ``source_at`` and ``copy_at``."""

    source_from: int
    copy_from: int
    source_to: int
    copy_to: int
    settled: bytes = b""
    last: Group | None = None
    source_at: int = -1
    copy_at: int = -1

    @classmethod
    def begin(cls, source: int, copy: int) -> "OffsetTail":
        """A range that covers nothing yet."""
        return cls(source, copy, source, copy, b"", None, source, copy)

    @property
    def is_empty(self) -> bool:
        """True when it has no runs and covers nothing."""
        return self.source_from == self.source_to and self.last is None

    @property
    def packed(self) -> bytes:
        """All its groups, packed."""
        return self.settled + pack_group(self.last) if self.last else self.settled

    def continues(self, other: "OffsetTail") -> bool:
        """True when it begins at the other's end."""
        return (self.source_from, self.copy_from) == (other.source_to, other.copy_to)

    def read_to(self, source_to: int) -> "OffsetTail":
        """The same, after uncopied source offsets."""
        return self if source_to == self.source_to else self._replace(source_to=source_to)

    def copied(self, batches: Sequence[Outgoing], begin: int, source_to: int, copy_to: int) -> "OffsetTail":
        """The same, after a transaction that wrote these batches to the copy from offset ``begin`` on."""
        settled, last = [self.settled], self.last
        source_at, copy_at, copy = self.source_at, self.copy_at, begin
        for source, length in _runs(batches):
            source_gap, copy_gap = source - source_at, copy - copy_at
            if last is not None and last[:3] == (source_gap, copy_gap, length):
                last = Group(source_gap, copy_gap, length, last[3] + 1)
            else:
                if last is not None:
                    settled.append(pack_group(last))
                last = Group(source_gap, copy_gap, length)
            source_at, copy = source + length, copy + length
            copy_at = copy
        packed = b"".join(settled) if len(settled) > 1 else self.settled
        return OffsetTail(self.source_from, self.copy_from, source_to, copy_to, packed, last, source_at, copy_at)

    def with_run(self, source: int, copy: int, length: int) -> "OffsetTail":
        """The same, after a run of so many records, by the offsets of its first one; it ends there."""
        run = Outgoing(b"", length, source, source + length, -1, raw=False)
        return self.copied([run], copy, source + length, copy + length)

    def joined(self, other: "OffsetTail") -> "OffsetTail":
        """Both in one; the other continues this one."""
        groups = list(unpack_groups(other.packed))
        if not groups:
            return self._replace(source_to=other.source_to, copy_to=other.copy_to)
        source_gap, copy_gap, length, repeat = groups[0]
        gaps = source_gap + other.source_from - self.source_at, copy_gap + other.copy_from - self.copy_at
        rest = [groups[0]._replace(repeat=repeat - 1)] if repeat > 1 else []
        own = [self.last] if self.last else []
        *settled, last = merge([*own, Group(*gaps, length), *rest, *groups[1:]])
        packed = self.settled + b"".join(map(pack_group, settled))
        ends = other.source_to, other.copy_to
        return OffsetTail(self.source_from, self.copy_from, *ends, packed, last, other.source_at, other.copy_at)

    def cut(self, copy_to: int) -> "OffsetTail":
        """The part of it that holds after a cut of the copy at an offset within it.

        It covers the source offsets before the first record that was cut off.
        """
        source, copy, source_to = self.source_from, self.copy_from, self.source_to
        groups: list[Group] = []
        for group in unpack_groups(self.packed):
            whole = group._replace(repeat=min((copy_to - copy) // (group.copy_gap + group.length), group.repeat))
            source, copy = source + whole.sources, copy + whole.copies
            groups += [whole] if whole.repeat else []
            if whole.repeat < group.repeat:
                part = group._replace(length=max(copy_to - copy - group.copy_gap, 0), repeat=1)
                groups += [part] if part.length else []
                source_to = source + part.sources
                break
        packed = b"".join(map(pack_group, merge(groups)))
        return unpack_tail(self.source_from, self.copy_from, source_to, copy_to, packed)

    def swapped(self) -> "OffsetTail":
        """The same range with source and copy swapped."""
        groups = (
            group._replace(source_gap=group.copy_gap, copy_gap=group.source_gap) for group in unpack_groups(self.packed)
        )
        packed = b"".join(map(pack_group, groups))
        return unpack_tail(self.copy_from, self.source_from, self.copy_to, self.source_to, packed)

    def pieces(self, size: int) -> Iterator["OffsetTail"]:
        """The same as several consecutive ranges, each with groups of about ``size`` bytes."""
        if len(self.settled) + _GROUP_BYTES <= size:
            yield self  # the usual case: nothing needs to be unpacked
            return
        begin = source, copy = self.source_from, self.copy_from
        packed = b""
        for group in unpack_groups(self.packed):
            more = pack_group(group)
            if packed and len(packed) + len(more) > size:
                yield unpack_tail(*begin, source, copy, packed)
                begin, packed = (source, copy), b""
            source, copy, packed = source + group.sources, copy + group.copies, packed + more
        yield unpack_tail(*begin, self.source_to, self.copy_to, packed)


def unpack_tail(source_from: int, copy_from: int, source_to: int, copy_to: int, packed: bytes) -> OffsetTail:
    """The range with these bounds and groups.

    Raises:
        IndexError, BatchCorrupt: the bytes are not groups, or not those of a range with these bounds.
    """
    source, copy, last = source_from, copy_from, None
    for last in unpack_groups(packed):
        source, copy = source + last.sources, copy + last.copies
        if not last.length or not last.repeat:
            raise BatchCorrupt("a run of no offsets in a map of offsets")
    if source > source_to or copy > copy_to:
        raise BatchCorrupt(f"a map of offsets to {source_to} and {copy_to} goes on to {source} and {copy}")
    settled = packed[: len(packed) - len(pack_group(last))] if last else b""
    return OffsetTail(source_from, copy_from, source_to, copy_to, settled, last, source, copy)


def _runs(batches: Sequence[Outgoing]) -> Iterable[tuple[int, int]]:
    """The runs of a transaction's batches, each as its first source offset and its length."""
    if len(batches) == 1 and not batches[0].runs:
        return ((batches[0].first_offset, batches[0].records),)
    runs: list[tuple[int, int]] = []
    for batch in batches:
        for source, length in batch.runs or ((batch.first_offset, batch.records),):
            if runs and sum(runs[-1]) == source:
                runs[-1] = runs[-1][0], runs[-1][1] + length
            else:
                runs.append((source, length))
    return runs


class MapFilling:
    """The runs of copied records from a source and a copy offset on, as ranges of about ``size`` bytes."""

    def __init__(self, source: int, copy: int, size: int) -> None:
        self._size = size
        self._ranges: list[OffsetTail] = []
        self._tail = OffsetTail.begin(source, copy)
        self._run: tuple[int, int, int] | None = None

    def add(self, source: int, copy: int, length: int) -> None:
        """Add the next run: its length, and the offsets of its first record."""
        if self._run is not None:
            first, first_copy, before = self._run
            if (first + before, first_copy + before) == (source, copy):
                self._run = first, first_copy, before + length
                return
            self._settle(*self._run)
        self._run = source, copy, length

    def finished(self, source_to: int, copy_to: int) -> list[OffsetTail]:
        """All ranges, up to these offsets."""
        if self._run is not None:
            self._settle(*self._run)
            self._run = None
        return [*self._ranges, self._tail._replace(source_to=source_to, copy_to=copy_to)]

    def _settle(self, source: int, copy: int, length: int) -> None:
        self._tail = self._tail.with_run(source, copy, length)
        if len(self._tail.packed) >= self._size:
            self._ranges.append(self._tail)
            self._tail = OffsetTail.begin(source + length, copy + length)
