"""The extent to which a copy that was made at least once holds its source, and which of its records are more than that.

MirrorMaker 2 copies a partition in order. After a crash it goes back to the offset that it committed last, and copies
from there once more. So the source's records from one that was copied on, as far as they were copied, are a subsequence
of the copy: the longest beginning of them that is one is what the copy *holds*. What comes after it can be appended:
then all records are there, in the source's order. Nothing else decides, so that neither the number of crashes nor
records that are equal in content matter. Every other record of the copy is an *extra*:

- a double, if the copy holds that record already;
- aborted, if it is one of an aborted transaction: MirrorMaker 2 reads uncommitted unless it is told otherwise;
- ahead, if the source has it only after what the copy holds: something before it was skipped, or came later;
- unknown otherwise: older than the window of the source, deleted there since, or another producer's.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from appliance.logs.model.comparison import Run


@dataclass(slots=True)
class Originals:
    """The source's records in a window, in order: the offset of each, and its fingerprint; and the aborted ones."""

    offsets: list[int] = field(default_factory=list)
    prints: list[bytes] = field(default_factory=list)
    aborted: set[bytes] = field(default_factory=set)
    _places: dict[bytes, int | list[int]] = field(default_factory=dict)

    def add(self, offset: int, fingerprint: bytes) -> None:
        """Add the next committed record."""
        place = len(self.offsets)
        self.offsets.append(offset)
        self.prints.append(fingerprint)
        places = self._places.setdefault(fingerprint, place)
        if isinstance(places, list):
            places.append(place)
        elif places != place:
            self._places[fingerprint] = [places, place]

    def places(self, fingerprint: bytes) -> Sequence[int]:
        """The indexes of the committed records with this fingerprint."""
        places = self._places.get(fingerprint, ())
        return (places,) if isinstance(places, int) else places

    def first_single(self, copies: Mapping[bytes, int]) -> int | None:
        """The index of the first record that is here once, and once among the copies; 0 if no copy is one of these."""
        singles = (place for place, each in enumerate(self.prints) if copies.get(each) == 1 == len(self.places(each)))
        return next(singles, None) if copies else 0

    def before(self, offset: int) -> int:
        """The number of records before an offset."""
        return bisect_left(self.offsets, offset)


@dataclass(frozen=True, slots=True)
class Aligned:
    """The content of the copy: it holds ``count`` records of the window from index ``begin`` on.

    ``doubles`` are extras of these; the offsets ``missing`` are not in the copy though a later record is, up to
    ``ahead_to``, past the last record in it; 0 if none is. ``reordered`` counts records that are ahead though nothing
    is missing before them. ``unknown`` are the copy's offsets of unknown extras after its first record of the window.
    """

    begin: int
    count: int
    doubles: tuple[Run, ...] = ()
    aborted: int = 0
    unknown: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    ahead_to: int = 0
    reordered: int = 0


class Alignment:
    """Aligns a copy, fed record by record, with the source's records from index ``begin`` on."""

    def __init__(self, originals: Originals, begin: int = 0) -> None:
        self._originals = originals
        self._begin = self._next = begin
        self.lowest: int | None = None
        """The lowest index of a record that was fed; None before there is one."""
        self._extras: list[tuple[int, bytes]] = []
        self._unknown: list[int] = []
        self._aborted = 0

    def feed(self, offset: int, fingerprint: bytes) -> None:
        """The copy's next record."""
        prints, at = self._originals.prints, self._next
        if at < len(prints) and prints[at] == fingerprint:
            self._next += 1
            self.lowest = at if self.lowest is None else min(self.lowest, at)
        elif places := self._originals.places(fingerprint):
            self._extras.append((offset, fingerprint))
            self.lowest = places[0] if self.lowest is None else min(self.lowest, places[0])
        elif fingerprint in self._originals.aborted:
            self._aborted += 1
        elif self.lowest is not None:
            self._unknown.append(offset)

    def finish(self) -> Aligned:
        """The result, once the whole copy was fed."""
        end_of_held = self._next
        doubles: list[tuple[int, int]] = []
        ahead: dict[bytes, list[int]] = {}
        for offset, fingerprint in self._extras:
            place = self._double(fingerprint, end_of_held, doubles)
            if place is None and fingerprint in self._originals.aborted:
                self._aborted += 1  # an application has sent it once more
            elif place is None:
                ahead.setdefault(fingerprint, []).append(offset)
            else:
                doubles.append((place, offset))
        later, more = self._places_ahead(ahead, end_of_held)
        missing = [place for place in range(end_of_held, max(later, default=end_of_held - 1) + 1) if place not in later]
        offsets = self._originals.offsets
        return Aligned(
            self._begin,
            end_of_held - self._begin,
            tuple(_runs(sorted([*doubles, *more], key=lambda each: each[1]), offsets)),
            self._aborted,
            tuple(self._unknown),
            tuple(offsets[place] for place in missing),
            offsets[max(later)] + 1 if later else 0,
            len(later) if not missing else 0,
        )

    def _double(self, fingerprint: bytes, end_of_held: int, before: Sequence[tuple[int, int]]) -> int | None:
        """The index of a held record with this fingerprint: that after the double before, else the last one."""
        places = self._originals.places(fingerprint)
        end = bisect_left(places, end_of_held)
        if end == 0 or places[end - 1] < self._begin:
            return None
        following = before[-1][0] + 1 if before else end_of_held
        at = bisect_left(places, following, hi=end)
        return following if at < end and places[at] == following else places[end - 1]

    def _places_ahead(self, ahead: dict[bytes, list[int]], end_of_held: int) -> tuple[set[int], list[tuple[int, int]]]:
        """The indexes of records that are ahead, each once; and those that are ahead more than once."""
        first_places: set[int] = set()
        more: list[tuple[int, int]] = []
        for fingerprint, offsets in ahead.items():
            places = [place for place in self._originals.places(fingerprint) if place >= end_of_held]
            first_places |= {*places[: len(offsets)]}
            more += [(places[-1], offset) for offset in offsets[len(places) :]] if places else []
        return first_places, more


def _runs(pairs: Sequence[tuple[int, int]], offsets: Sequence[int]) -> list[Run]:
    """Pairs of a record's index and its copy's offset, in the copy's order, as runs."""
    runs: list[Run] = []
    for place, copy in pairs:
        last = runs[-1] if runs else None
        if last and (last.source + last.length, last.copy + last.length) == (offsets[place], copy):
            runs[-1] = last._replace(length=last.length + 1)
        else:
            runs.append(Run(offsets[place], copy, 1))
    return runs
