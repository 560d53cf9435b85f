"""The comparison of a compacted topic: the newest record of each key.

Compaction removes older records of a key, and old tombstones, at different times on each side. So only the newest
record of each key counts, and a tombstone counts as no record. The order between keys is not compared, nor are records
without a key, which compaction removes.

A table holds ``KEYS_MAX`` keys at most. When there are more, it keeps to a *share* of them, the keys whose fingerprint
is below a bound, and both sides are read again for the next share.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from appliance.kafka.records.records import Record, key_and_value
from appliance.logs.model.alignment import fingerprint

KEYS_MAX = 250_000
"""Keys in memory at once, which take some 90 MB."""

ALL_KEYS = 2**64


class _Newest(NamedTuple):
    offset: int
    print: bytes | None
    """None for a tombstone."""


@dataclass(frozen=True, slots=True)
class Keys:
    """A number of keys, with the first and the last offset of their newest records; None and -1: none."""

    count: int = 0
    first: int | None = None
    last: int = -1

    @classmethod
    def at(cls, offsets: Collection[int]) -> "Keys":
        """One key at each of these offsets."""
        return cls(len(offsets), min(offsets, default=None), max(offsets, default=-1))

    def plus(self, other: "Keys") -> "Keys":
        """These keys and others."""
        firsts = (first for first in (self.first, other.first) if first is not None)
        return Keys(self.count + other.count, min(firsts, default=None), max(self.last, other.last))


class Tally(NamedTuple):
    """The comparison of a share of the keys; offsets are the source's, but for those of ``unknown`` and ``copies``.

    ``equal`` keys have the same newest record on both sides, ``copies`` are these in the copy, and ``digest`` is the
    sum of the records' fingerprints. ``changed`` keys have another one at the destination, and ``absent`` ones none;
    ``not_due`` counts keys that have none either, and whose newest record lies before those that the copy must hold.
    ``unknown`` keys have a record at the destination alone.
    """

    equal: Keys = Keys()
    copies: Keys = Keys()
    changed: Keys = Keys()
    absent: Keys = Keys()
    unknown: Keys = Keys()
    not_due: int = 0
    digest: int = 0

    def plus(self, other: "Tally") -> "Tally":
        """That of two shares."""
        return Tally(
            self.equal.plus(other.equal),
            self.copies.plus(other.copies),
            self.changed.plus(other.changed),
            self.absent.plus(other.absent),
            self.unknown.plus(other.unknown),
            self.not_due + other.not_due,
            (self.digest + other.digest) % 2**128,
        )


class NewestRecords:
    """The newest record of each key of one share, on both sides."""

    def __init__(self, low: int, high: int, keys_max: int = KEYS_MAX) -> None:
        """``low`` and ``high`` bound the fingerprints of the share's keys; ``high`` falls when they are too many."""
        self._low = low
        self.high = high
        self._keys_max = keys_max
        self._source: dict[int, _Newest] = {}
        self._destination: dict[int, _Newest] = {}

    def add_source(self, records: Iterable[Record]) -> None:
        """The next records of the source."""
        self._add(self._source, records)

    def add_destination(self, records: Iterable[Record]) -> None:
        """The next records of the destination."""
        self._add(self._destination, records)

    def tally(self, end: int, due_from: int = 0) -> Tally:
        """The comparison; source records past offset ``end`` are not yet due, nor those before ``due_from``."""
        copies = self._destination
        same = [(n, c) for key, n in self._source.items() if (c := copies.get(key)) and n.print == c.print and n.print]
        due = [(key, n) for key, n in self._source.items() if n.offset < end]
        missing = [n.offset for key, n in due if key not in copies and n.print]
        absent = [offset for offset in missing if offset >= due_from]
        return Tally(
            Keys.at([newest.offset for newest, _ in same]),
            Keys.at([copy.offset for _, copy in same]),
            Keys.at([n.offset for key, n in due if key in copies and copies[key].print != n.print]),
            Keys.at(absent),
            Keys.at([n.offset for key, n in copies.items() if n.print and key not in self._source]),
            len(missing) - len(absent),
            sum(int.from_bytes(newest.print or b"", "big") for newest, _ in same) % 2**128,
        )

    def _add(self, side: dict[int, _Newest], records: Iterable[Record]) -> None:
        for record in records:
            key, value = key_and_value(record.body)
            if key is None:
                continue
            number = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")
            if self._low <= number < self.high:
                side[number] = _Newest(record.offset, None if value is None else fingerprint(record))
        while max(len(self._source), len(self._destination)) > self._keys_max and self.high - self._low > 1:
            self._halve()

    def _halve(self) -> None:
        self.high = (self._low + self.high) // 2
        self._source = {key: newest for key, newest in self._source.items() if key < self.high}
        self._destination = {key: newest for key, newest in self._destination.items() if key < self.high}
