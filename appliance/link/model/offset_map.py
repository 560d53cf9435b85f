"""The offset map of a source partition: from source offsets to those of its copy, and back. It never guesses.

A map is made of segments. Each one maps all records of a range of both logs. Segments chain if one begins at the
offset where the other ends; between others nothing is known, and nothing is answered. The order in which segments were
written decides: one that begins below the end of an older one shows that the copy was cut there, and rewritten. A
source offset that was copied twice maps to its newest copy.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from appliance.kafka.protocol.metadata import is_another
from appliance.link.model.offset_runs import RunIndex
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import UNKNOWN, Position
from appliance.link.model.translation import NOT_KNOWN, Translation, TranslationState


def exact(offset: int) -> Translation:
    """The known answer."""
    return Translation(offset, TranslationState.EXACT)


@dataclass(frozen=True)
class Segment:
    """A range of a map, of topics identified by id (invariant G).

    A segment that ``fills`` was made by reading both logs, for records copied before there was a map: it overrides
    older segments only within its range.
    """

    source_id: UUID
    destination_id: UUID
    range: OffsetTail
    fills: bool = False

    @property
    def index(self) -> RunIndex:
        """Its runs, for searching."""
        return _index(self.range)

    def cut(self, copy_to: int) -> "Segment":
        """The part of it that holds after a cut of the copy at an offset within it."""
        return replace(self, range=self.range.cut(copy_to))

    def belongs_to(self, position: Position) -> bool:
        """True when its topics are those of a position."""
        return not (
            is_another(self.source_id, position.source_id) or is_another(self.destination_id, position.destination_id)
        )


@lru_cache(maxsize=64)
def _index(extent: OffsetTail) -> RunIndex:
    """The index of a range; only a few are cached, since an index takes a hundred times the space of packed runs."""
    return RunIndex(extent.packed, extent.source_from, extent.copy_from)


def overlay(segments: list[Segment], newer: Segment) -> None:
    """Add a segment to those in the copy's order, which never overlap there; mostly it comes after all others."""
    begin = newer.range.copy_from
    if newer.fills:
        segments[:] = _filled(segments, newer)
        return
    while segments and segments[-1].range.copy_from >= begin and segments[-1].range.copy_to > begin:
        segments.pop()
    if segments and segments[-1].range.copy_to > begin:
        segments[-1] = segments[-1].cut(begin)
    segments.append(newer)


def with_tail(segments: Iterable[Segment], position: Position) -> list[Segment]:
    """Segments in the copy's order, and the tail of the position that follows them."""
    whole = list(segments)
    if position.tail is not None:
        overlay(whole, Segment(position.source_id, position.destination_id, position.tail))
    return whole


def is_copied(segments: Sequence[Segment], first: int, last: int) -> bool | None:
    """True of a batch of the copy, by its first and last offset, that the link wrote, False of others'; None: unknown.

    All its records are of one writer. The segments are in the copy's order.
    """
    at = bisect_right(segments, first, key=lambda each: each.range.copy_from) - 1
    if at < 0 or segments[at].range.copy_to <= first:
        return None
    place = segments[at].index.at_copy(first)
    return place is not None and place[1] <= last


def run_at(segments: Sequence[Segment], offset: int) -> tuple[int, int] | None:
    """The source offset of the record at an offset of the copy, and the length of its run from there.

    None: no record of this source is known there. The segments are in the copy's order.
    """
    at = bisect_right(segments, offset, key=lambda each: each.range.copy_from) - 1
    found = segments[at].index.run_at_copy(offset) if at >= 0 and offset < segments[at].range.copy_to else None
    return (found[0], found[2]) if found is not None and found[1] == offset else None


def drop(segments: list[Segment], begin: int) -> None:
    """Remove the segment that begins at an offset of the copy, if there is one."""
    at = bisect_left(segments, begin, key=lambda each: each.range.copy_from)
    while at < len(segments) and segments[at].range.copy_from == begin:
        del segments[at]


def _filled(older: Sequence[Segment], newer: Segment) -> list[Segment]:
    """Insert a segment where nothing was known when it was made.

    Any segment there nevertheless had been cut, perhaps by one that compaction has replaced with this one since.
    """
    begin, end = newer.range.copy_from, newer.range.copy_to
    below = [each if each.range.copy_to <= begin else each.cut(begin) for each in older if _begins_below(each, begin)]
    above = [each for each in older if not _begins_below(each, begin) and each.range.copy_from >= end]
    return [*below, newer, *above] if begin < end else list(older)


def _begins_below(each: Segment, begin: int) -> bool:
    return each.range.copy_from < begin or each.range.copy_to <= begin


class Hole(NamedTuple):
    """A range of a copy without a map, and the source offsets that it must come from.

    ``source_from`` is -1 if nothing is known before it either.
    """

    copy_from: int
    copy_to: int
    source_from: int
    source_to: int

    def lies_in(self, others: Iterable["Hole"]) -> bool:
        """True when one of these begins at the same offset, and reaches at least as far."""
        begins = [each for each in others if each[0::2] == self[0::2]]
        return any(each.copy_to >= self.copy_to and each.source_to >= self.source_to for each in begins)


class OffsetMap:
    """The map of one partition: ``segments`` in the copy's order, and its position, with the map's tail."""

    def __init__(self, segments: Iterable[Segment] = (), position: Position | None = None) -> None:
        self.position = position
        self.segments = list(segments)
        self._next_source, self._next_copy = UNKNOWN, UNKNOWN
        if position is None:
            return
        self.segments = with_tail((each for each in self.segments if each.belongs_to(position)), position)
        tail, end = position.tail, position.copy_end
        self._next_source = position.next_offset
        self._next_copy = UNKNOWN if end is None else tail.copy_to if tail else end.offset

    def translate(self, offset: int) -> Translation:
        """The copy's offset of the first copied record at or after a source offset."""
        if self._next_source == UNKNOWN:
            return NOT_KNOWN
        if offset > self._next_source:
            return Translation(None, TranslationState.AHEAD, offset - self._next_source)
        while offset < self._next_source:
            number = self._covering(offset)
            if number is None:
                return NOT_KNOWN
            limit = min(self._until_newer(number, offset), self._next_source)
            place = self.segments[number].index.at_source(offset)
            if place is not None and place[0] < limit:
                return exact(place[1])
            offset = limit
        return NOT_KNOWN if self._next_copy == UNKNOWN else exact(self._next_copy)

    def unread_from(self, offset: int, start: int) -> Translation:
        """The copy's lowest offset of a record copied from a source offset at or after this one; its end if none is.

        ``start`` is the first offset of the copy's log. What was copied twice counts twice, and what was never copied
        counts nowhere: a consumer that continues here skips none, and may read some again. A part of the copy without a
        map that may hold such a record below makes it unknown.
        """
        above = (each for each in self.segments if each.range.copy_to > start and each.range.source_to > offset)
        place = next(filter(None, (each.index.at_source(offset) for each in above)), (-1, self._next_copy))
        if UNKNOWN in (self._next_source, place[1]):
            return NOT_KNOWN
        ahead, lowest = offset - self._next_source, max(place[1], start)
        for hole in self.holes():
            below = start < hole.copy_to and hole.copy_from < lowest
            if below and (offset < hole.source_to or hole.source_from > hole.source_to):
                return NOT_KNOWN
        state = TranslationState.AHEAD if ahead > 0 else TranslationState.EXACT
        return Translation(lowest, state, max(ahead, 0))

    def reverse(self, offset: int) -> Translation:
        """The source offset of the first copied record whose copy lies at or after an offset of the copy."""
        if self._next_copy == UNKNOWN or self._next_source == UNKNOWN:
            return NOT_KNOWN
        if offset > self._next_copy:
            return Translation(None, TranslationState.AHEAD, offset - self._next_copy)
        for segment in self.segments:
            extent = segment.range
            if extent.copy_from <= offset < extent.copy_to:
                place = segment.index.at_copy(offset)
                if place is not None:
                    return exact(place[0])
                offset = extent.copy_to
        return exact(self._next_source) if offset == self._next_copy else NOT_KNOWN

    def holes(self) -> list[Hole]:
        """The unknown ranges of the copy, from its beginning to its end."""
        holes, source, copy = [], UNKNOWN, 0
        for segment in self.segments:
            extent = segment.range
            if extent.copy_from > copy:
                holes.append(Hole(copy, extent.copy_from, source, extent.source_from))
            source, copy = extent.source_to, max(copy, extent.copy_to)
        if self._next_copy > copy:
            holes.append(Hole(copy, self._next_copy, source, self._next_source))
        return holes

    def _covering(self, offset: int) -> int | None:
        """The newest segment that covers a source offset."""
        for number in range(len(self.segments) - 1, -1, -1):
            extent = self.segments[number].range
            if extent.source_from <= offset < extent.source_to:
                return number
        return None

    def _until_newer(self, number: int, offset: int) -> int:
        """The source offset at which a segment ends, or a newer one begins."""
        begins = (each.range.source_from for each in self.segments[number + 1 :])
        return min([self.segments[number].range.source_to, *(begin for begin in begins if begin > offset)])
