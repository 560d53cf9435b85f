"""Runs of copied records: source offsets that follow each other, with copies that follow each other.

Packed, consecutive equal runs are one group, of a few bytes::

    head unsigned varint: length << 5 | repeated << 4 | kind of source gap << 2 | kind of copy gap
    source gap unsigned varint, where its kind is 2      offsets without a copy between the run before and this one
    copy gap unsigned varint, where its kind is 2        offsets that hold no copy: markers, aborted records
    repeat unsigned varint, where repeated

A kind below 2 is the gap itself. The gaps of the first group count from the beginning of the runs' range.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from appliance.kafka.records.varint import encode_unsigned, read_unsigned

_GIVEN = 2
_REPEATED = 0x10


class Group(NamedTuple):
    """``repeat`` runs of ``length`` records, each after the same gaps on both sides."""

    source_gap: int
    copy_gap: int
    length: int
    repeat: int = 1

    @property
    def sources(self) -> int:
        """Number of source offsets that they cover, with their gaps."""
        return (self.source_gap + self.length) * self.repeat

    @property
    def copies(self) -> int:
        """Number of the copy's offsets that they cover, with their gaps."""
        return (self.copy_gap + self.length) * self.repeat


def pack_group(group: Group) -> bytes:
    """The bytes of a group."""
    source_gap, copy_gap, length, repeat = group
    head = length << 5 | min(source_gap, _GIVEN) << 2 | min(copy_gap, _GIVEN)
    packed = encode_unsigned(head | _REPEATED if repeat > 1 else head)
    if source_gap >= _GIVEN:
        packed += encode_unsigned(source_gap)
    if copy_gap >= _GIVEN:
        packed += encode_unsigned(copy_gap)
    return packed + encode_unsigned(repeat) if repeat > 1 else packed


def unpack_groups(packed: bytes) -> Iterator[Group]:
    """The groups in some bytes.

    Raises:
        IndexError, BatchCorrupt: the bytes are not groups.
    """
    at = 0
    while at < len(packed):
        head, at = read_unsigned(packed, at)
        source_gap, copy_gap, repeat = head >> 2 & 3, head & 3, 1
        if source_gap == _GIVEN:
            source_gap, at = read_unsigned(packed, at)
        if copy_gap == _GIVEN:
            copy_gap, at = read_unsigned(packed, at)
        if head & _REPEATED:
            repeat, at = read_unsigned(packed, at)
        yield Group(source_gap, copy_gap, head >> 5, repeat)


def merge(groups: Iterable[Group]) -> list[Group]:
    """The same runs, with consecutive equal ones in one group."""
    merged_groups: list[Group] = []
    for group in groups:
        if merged_groups and merged_groups[-1][:3] == group[:3]:
            merged_groups[-1] = group._replace(repeat=merged_groups[-1].repeat + group.repeat)
        else:
            merged_groups.append(group)
    return merged_groups


class _RunPlace(NamedTuple):
    """The number of a group, of one of its runs, and of a record in the run."""

    group: int
    run: int
    record: int


class RunIndex:
    """Runs that are searchable from both sides; they begin after ``source_from`` and ``copy_from``."""

    def __init__(self, packed: bytes, source_from: int, copy_from: int) -> None:
        self._groups = list(unpack_groups(packed))
        self._sources: list[int] = []
        self._copies: list[int] = []
        for group in self._groups:
            self._sources.append(source_from + group.source_gap)
            self._copies.append(copy_from + group.copy_gap)
            source_from, copy_from = source_from + group.sources, copy_from + group.copies

    def at_source(self, offset: int) -> tuple[int, int] | None:
        """The first record at or after a source offset, as source and copy offset; None if there is none."""
        run = self._find(self._sources, 0, offset)
        return self._place(run) if run else None

    def at_copy(self, offset: int) -> tuple[int, int] | None:
        """The first record whose copy lies at or after an offset of the copy, likewise."""
        run = self._find(self._copies, 1, offset)
        return self._place(run) if run else None

    def run_at_copy(self, offset: int) -> tuple[int, int, int] | None:
        """The first record whose copy lies at or after an offset of the copy, and the length of its run from there."""
        run = self._find(self._copies, 1, offset)
        return (*self._place(run), self._groups[run.group].length - run.record) if run else None

    def _find(self, starts: list[int], side: int, offset: int) -> _RunPlace | None:
        number = bisect_right(starts, offset) - 1
        if number >= 0:
            group = self._groups[number]
            run, record = divmod(offset - starts[number], group[side] + group.length)
            if record >= group.length:
                run, record = run + 1, 0
            if run < group.repeat:
                return _RunPlace(number, run, record)
        return _RunPlace(number + 1, 0, 0) if number + 1 < len(starts) else None

    def _place(self, position: _RunPlace) -> tuple[int, int]:
        number, run, record = position
        source_gap, copy_gap, length, _ = self._groups[number]
        source = self._sources[number] + run * (source_gap + length) + record
        return source, self._copies[number] + run * (copy_gap + length) + record
