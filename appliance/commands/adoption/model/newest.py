"""The extent to which the copy of a compacted topic holds its source: there, only the newest record of each key counts.

Compaction takes records from either log in its own time, so that nothing follows from a record that is missing. And a
copy that MirrorMaker 2 went back in may end with an older record of a key than it held before. So copying goes on from
the first record that the copy lacks, and that it has nothing newer for; and from the newest record of each key for
which the copy's newest is another one. What is copied once more from there on is harmless: compaction removes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class KeyedRecord:
    """A source record: the fingerprints of its key and of itself; ``deletes`` is true of a tombstone."""

    offset: int
    key: bytes
    fingerprint: bytes
    deletes: bool = False


@dataclass(slots=True)
class NewestCopies:
    """The copy's records, fed in order: ``newest`` by key, and the fingerprints of all."""

    newest: dict[bytes, bytes] = field(default_factory=dict)
    prints: set[bytes] = field(default_factory=set)

    def feed(self, key: bytes, fingerprint: bytes) -> None:
        """The copy's next record."""
        self.newest[key] = fingerprint
        self.prints.add(fingerprint)


@dataclass(frozen=True, slots=True)
class NewestHeld:
    """Copying goes on from the record at index ``following``; ``again`` records after it are in the copy already.

    ``found`` counts the source's records that are in the copy.
    """

    following: int
    again: int
    found: int


def newest_held(originals: list[KeyedRecord], copies: NewestCopies) -> NewestHeld:
    """Find where copying goes on."""
    present = [place for place, each in enumerate(originals) if each.fingerprint in copies.prints]
    end = present[-1] + 1 if present else 0
    newest: Mapping[bytes, int] = {each.key: place for place, each in enumerate(originals[:end])}
    following = min(
        (place for key, place in newest.items() if not _is_newest(originals[place], copies.newest.get(key))),
        default=end,
    )
    return NewestHeld(following, sum(place >= following for place in present), len(present))


def _is_newest(record: KeyedRecord, copied: bytes | None) -> bool:
    """True when the copy's newest record of its key is this one, or there is none since this one deletes the key."""
    return copied == record.fingerprint or (copied is None and record.deletes)
