"""The comparison of a compacted topic: the newest record of each key.

Compaction removes older records of a key, and old tombstones, at different times on each side. So only the newest
record of each key counts, and a tombstone counts as no record. The order between keys is not compared, nor are records
without a key, which compaction removes.

A table holds ``KEYS_MAX`` keys at most. When there are more, it keeps to a *share* of them, the keys whose fingerprint
is below a bound, and both sides are read again for the next share.
"""

import hashlib
from collections.abc import Iterable
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
class Tally:
    """The counts of a share of the keys; offsets are the source's, but for those of ``unknown`` and ``first_copy``.

    ``equal`` keys have the same newest record on both sides, the first of them at ``first_equal``, in the copy at
    ``first_copy``, the last at ``last_equal`` (-1: none), and ``digest`` is the sum of those records' fingerprints.
    ``changed`` keys have another one at the destination, and ``absent`` ones none, the first and the last of them where
    their names say; ``not_due`` ones have none either, and their newest record lies before those that the copy must
    hold. ``unknown`` keys have a record at the destination alone, the first of them at its offset ``unknown_at``, the
    last at ``last_unknown``.
    """

    equal: int = 0
    digest: int = 0
    last_equal: int = -1
    changed: int = 0
    first_changed: int | None = None
    absent: int = 0
    first_absent: int | None = None
    last_absent: int = -1
    unknown: int = 0
    unknown_at: int | None = None
    last_unknown: int = -1
    first_equal: int | None = None
    first_copy: int | None = None
    not_due: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.equal + other.equal,
            (self.digest + other.digest) % 2**128,
            max(self.last_equal, other.last_equal),
            self.changed + other.changed,
            _first(self.first_changed, other.first_changed),
            self.absent + other.absent,
            _first(self.first_absent, other.first_absent),
            max(self.last_absent, other.last_absent),
            self.unknown + other.unknown,
            _first(self.unknown_at, other.unknown_at),
            max(self.last_unknown, other.last_unknown),
            _first(self.first_equal, other.first_equal),
            _first(self.first_copy, other.first_copy),
            self.not_due + other.not_due,
        )


def _first(one: int | None, other: int | None) -> int | None:
    return min((offset for offset in (one, other) if offset is not None), default=None)


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
        equal = [newest for newest, _ in same]
        due = [(key, n) for key, n in self._source.items() if n.offset < end]
        changed = [n.offset for key, n in due if key in copies and copies[key].print != n.print]
        missing = [n.offset for key, n in due if key not in copies and n.print]
        absent = [offset for offset in missing if offset >= due_from]
        unknown = [n.offset for key, n in copies.items() if n.print and key not in self._source]
        return Tally(
            equal=len(equal),
            digest=sum(int.from_bytes(newest.print or b"", "big") for newest in equal) % 2**128,
            last_equal=max((newest.offset for newest in equal), default=-1),
            changed=len(changed),
            first_changed=min(changed, default=None),
            absent=len(absent),
            first_absent=min(absent, default=None),
            last_absent=max(absent, default=-1),
            unknown=len(unknown),
            unknown_at=min(unknown, default=None),
            last_unknown=max(unknown, default=-1),
            first_equal=min((newest.offset for newest in equal), default=None),
            first_copy=min((copy.offset for _, copy in same), default=None),
            not_due=len(missing) - len(absent),
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
