"""Compare the two sides of a partition record by record: lost, doubled, moved and changed records.

Each side is a sequence of fingerprints: 16 bytes for each record with its offset, for records of any size. Equal
sequences have no differences. Otherwise the longest common subsequence stays where it is, and each other record gets a
kind:

- *reordered*: both sides have the record, at different places. Their number is the fewest that would have to be moved.
- *duplicated*: the destination has the record more often than the source.
- *altered*: at the same place, each side has a record that the other side has nowhere.
- *lost*: the destination does not have the record, and has no other in its place.

A record that only the destination has, and that is not in the place of a lost one, counts as duplicated, because it is
one too many. So the numbers of records fulfil ``source - lost + duplicated == destination``.
"""

import enum
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

EXAMPLES_MAX = 10

Pair = tuple[int, int]
"""The indexes of one record at the source and at the destination."""


class Kind(enum.StrEnum):
    """The kinds of differences."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    ALTERED = "altered"


@dataclass(frozen=True, slots=True)
class Track:
    """One partition as a consumer saw it: the offset and the fingerprint of each record, in the order of arrival."""

    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    fingerprints: "array[int]" = field(default_factory=lambda: array("Q"))

    def append(self, offset: int, fingerprint: int) -> None:
        """Add a record."""
        self.offsets.append(offset)
        self.fingerprints.append(fingerprint)


@dataclass(frozen=True, slots=True)
class Difference:
    """One record that differs; the offset is None on a side that does not have the record."""

    kind: Kind
    topic: str
    partition: int
    source_offset: int | None
    destination_offset: int | None

    def __str__(self) -> str:
        where = [f"{self.kind}: topic {self.topic} partition {self.partition}"]
        if self.source_offset is not None:
            where.append(f"source offset {self.source_offset}")
        if self.destination_offset is not None:
            where.append(f"destination offset {self.destination_offset}")
        return ", ".join(where)


@dataclass(frozen=True, slots=True)
class Differences:
    """The number of records that differ, by kind, and the first few of them."""

    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    altered: int = 0
    examples: tuple[Difference, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.duplicated or self.reordered or self.altered)

    def __add__(self, other: "Differences") -> "Differences":
        return Differences(
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.reordered + other.reordered,
            self.altered + other.altered,
            (self.examples + other.examples)[:EXAMPLES_MAX],
        )


def compare(topic: str, partition: int, source: Track, destination: Track) -> Differences:
    """The differences between the two sides of a partition.

    Equal sides cost one pass and no memory. Unequal sides cost n log n if all records of the source differ, and the
    square of n if all are the same.
    """
    if source.fingerprints == destination.fingerprints:
        return Differences()
    found = _explain(source.fingerprints, destination.fingerprints)
    counts = {kind: sum(each is kind for each, _, _ in found) for kind in Kind}
    found.sort(key=lambda difference: (difference[1] is None, difference[1], difference[2]))
    examples = tuple(
        Difference(kind, topic, partition, _at(source.offsets, left), _at(destination.offsets, right))
        for kind, left, right in found[:EXAMPLES_MAX]
    )
    return Differences(
        counts[Kind.LOST], counts[Kind.DUPLICATED], counts[Kind.REORDERED], counts[Kind.ALTERED], examples
    )


def _at(offsets: Sequence[int], index: int | None) -> int | None:
    return None if index is None else offsets[index]


def _explain(source: Sequence[int], destination: Sequence[int]) -> list[tuple[Kind, int | None, int | None]]:
    """The kind of each difference, with the record's index on each side that has it."""
    kept = _longest_common_subsequence(source, destination)
    missing = _others(len(source), (left for left, _ in kept))
    extra = _others(len(destination), (right for _, right in kept))
    moved = _same_records(source, missing, destination, extra)
    found: list[tuple[Kind, int | None, int | None]] = [(Kind.REORDERED, left, right) for left, right in moved]

    missing = _without(missing, (left for left, _ in moved))
    extra = _without(extra, (right for _, right in moved))
    known = {record: index for index, record in reversed(list(enumerate(source)))}
    strange = [right for right in extra if destination[right] not in known]
    changed = _same_places(kept, missing, strange)
    found += [(Kind.ALTERED, left, right) for left, right in changed]

    found += [(Kind.LOST, left, None) for left in _without(missing, (left for left, _ in changed))]
    surplus = _without(extra, (right for _, right in changed))
    found += [(Kind.DUPLICATED, known.get(destination[right]), right) for right in surplus]
    return found


def _longest_common_subsequence(source: Sequence[int], destination: Sequence[int]) -> list[Pair]:
    """The longest common subsequence by Hunt and Szymanski (1977), after the common prefix."""
    shortest = min(len(source), len(destination))
    begin = next((index for index in range(shortest) if source[index] != destination[index]), shortest)
    indexes: defaultdict[int, list[int]] = defaultdict(list)
    for index in range(len(source) - 1, begin - 1, -1):
        indexes[source[index]].append(index)
    pairs: list[Pair] = []
    before: list[int] = []
    # For each length, the chain that ends lowest of those found so far: its end, and its last pair.
    ends: list[int] = []
    last: list[int] = []
    for right in range(begin, len(destination)):
        for left in indexes.get(destination[right], ()):
            length = bisect_left(ends, left)
            before.append(last[length - 1] if length else -1)
            ends[length : length + 1], last[length : length + 1] = [left], [len(pairs)]
            pairs.append((left, right))
    return [(index, index) for index in range(begin)] + _chain(pairs, before, last[-1] if last else -1)


def _chain(pairs: Sequence[Pair], before: Sequence[int], end: int) -> list[Pair]:
    """The pairs of a chain in their order; ``before`` has each pair's predecessor, -1 for none."""
    chain: list[Pair] = []
    while end >= 0:
        chain.append(pairs[end])
        end = before[end]
    return chain[::-1]


def _others(length: int, taken: Iterable[int]) -> list[int]:
    return _without(range(length), taken)


def _without(indexes: Iterable[int], taken: Iterable[int]) -> list[int]:
    gone = set(taken)
    return [index for index in indexes if index not in gone]


def _same_records(
    source: Sequence[int], missing: Sequence[int], destination: Sequence[int], extra: Sequence[int]
) -> list[Pair]:
    """Pairs of equal records, first with first."""
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    for left in reversed(missing):
        waiting[source[left]].append(left)
    return [(waiting[fingerprint].pop(), right) for right in extra if waiting.get(fingerprint := destination[right])]


def _same_places(kept: Sequence[Pair], missing: Sequence[int], strange: Sequence[int]) -> list[Pair]:
    """Pairs of records between the same two kept ones, first with first."""
    lefts, rights = [left for left, _ in kept], [right for _, right in kept]
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    for left in reversed(missing):
        waiting[bisect_left(lefts, left)].append(left)
    return [(waiting[gap].pop(), right) for right in strange if waiting.get(gap := bisect_left(rights, right))]
