"""The alignment of two logs that begin at different records.

Retention removes the beginning of the source's log or of the copy's, or the copy begins later by its settings. Offsets
do not correspond, and no state of the replicator is used. So one side's first records, its *anchor*, are searched on
the other side. A single record is not enough: a producer may write the same one many times within a millisecond, and a
log may begin amid those. The anchor is all first records with one timestamp, and the first one with another: if times
do not run backwards, it has only one place. A log with only one timestamp gives no complete anchor; then the last of
several places counts, since retention removes the beginning.
"""

import hashlib
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from appliance.kafka.records.records import Record

ANCHOR_RECORDS = 1000
"""Largest number of records in an anchor."""

_TIMESTAMP = struct.Struct(">q")


def fingerprint(record: Record) -> bytes:
    """Timestamp, key, value and headers in 16 bytes."""
    return hashlib.blake2b(_TIMESTAMP.pack(record.timestamp) + record.body, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Anchor:
    """The fingerprints of a log's first records, the time of the first one, and a flag that more would not help."""

    prints: tuple[bytes, ...]
    timestamp: int
    complete: bool

    def begins_like(self, other: "Anchor") -> bool:
        """True when the two logs begin with the same record, as far as the shorter of the anchors shows."""
        count = min(len(self.prints), len(other.prints))
        return self.prints[:count] == other.prints[:count]


def anchor(records: Sequence[Record]) -> Anchor:
    """The anchor of a log that begins with these records, one at least."""
    prints = []
    for record in records[:ANCHOR_RECORDS]:
        prints.append(fingerprint(record))
        if record.timestamp != records[0].timestamp:
            break
    complete = len(prints) == ANCHOR_RECORDS or records[len(prints) - 1].timestamp != records[0].timestamp
    return Anchor(tuple(prints), records[0].timestamp, complete)


class Search:
    """The search for an anchor in a log that is fed piece by piece (Knuth, Morris and Pratt 1977)."""

    def __init__(self, anchor: Anchor) -> None:
        self._sought = anchor.prints
        self._first = anchor.complete
        self._borders = _borders(anchor.prints)
        self._matched = 0
        self._offsets: deque[int] = deque(maxlen=len(anchor.prints))
        self.place: int | None = None
        """The offset at which the anchor begins in what was fed."""

    def feed(self, records: Iterable[Record]) -> bool:
        """Search on in these records; true when the anchor is found, which ends the search."""
        for record in records:
            self._offsets.append(record.offset)
            current = fingerprint(record)
            while self._matched and self._sought[self._matched] != current:
                self._matched = self._borders[self._matched - 1]
            self._matched += self._sought[self._matched] == current
            if self._matched == len(self._sought):
                self.place = self._offsets[0]
                if self._first:
                    return True
                self._matched = self._borders[-1]
        return False

    @property
    def begun(self) -> int | None:
        """The offset at which a beginning of the anchor stands at the very end of what was fed."""
        return self._offsets[-self._matched] if self._matched else None


def _borders(anchor: Sequence[bytes]) -> list[int]:
    """The failure function: for each index, the length of the longest proper prefix that ends there."""
    borders = [0] * len(anchor)
    length = 0
    for place in range(1, len(anchor)):
        while length and anchor[place] != anchor[length]:
            length = borders[length - 1]
        length += anchor[place] == anchor[length]
        borders[place] = length
    return borders
