"""The names of the audit table's files, and which of them hold, are merged, or are old. Pure.

    day=2026-11-25/00000000000000000017-00000000000000000017.parquet    the rows of write 17, and the state after it
    day=2026-11-25/00000000000000000001-00000000000000000016.parquet    those of writes 1 to 16 of that day, merged
    _writes/00000000000000000017                                        the claim of write 17: its file and its lanes

A write claims its number first: the claim is made only if there is none, so of two writers one gets it. Then it writes
the file. The file of a claim that has none, since its writer was killed, is written by the next writer: with the same
name, and up to the same offsets of the positions topic. So a file is replaced, and never doubled.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from appliance.audit.model.entries import DAY_MS
from appliance.errors import PeerError, error_text

CLAIMS = "_writes"

CLAIMS_KEPT = 3000
"""Number of claims that are kept: a writer that was suspended for that many writes may wake up and claim again."""

MERGED_BYTES_MAX = 32 * 1024 * 1024
"""Size from which a file is not merged any more, in bytes."""

FILES_A_MERGE = 60
"""Number of small files of a day that are merged at once; those of a day that has ended are merged in any case."""

_FILE = re.compile(r"day=(\d{4}-\d\d-\d\d)/(\d{20})-(\d{20})\.parquet")
_VERSION = 1


class DataFile(NamedTuple):
    """A file with the rows of a day, of the writes ``first`` to ``last``; ``size`` in bytes, 0 if unknown."""

    day: date
    first: int
    last: int
    size: int = 0

    @property
    def name(self) -> str:
        """Its name below the table's folder."""
        return f"day={self.day.isoformat()}/{self.first:020}-{self.last:020}.parquet"


class Claim(NamedTuple):
    """The claim of a write: its number, the file that it writes, and the offset before which it ends in each lane."""

    number: int
    file: str
    topic_id: str
    lanes: Mapping[int, int]

    @property
    def name(self) -> str:
        """Its name below the table's folder."""
        return claim_name(self.number)


def claim_name(number: int) -> str:
    """The name of the claim of a write."""
    return f"{CLAIMS}/{number:020}"


def day_of(day: int) -> date:
    """The date of a day since 1970."""
    return datetime.fromtimestamp(day * DAY_MS / 1000, UTC).date()


def encode_claim(claim: Claim) -> bytes:
    """A claim as text."""
    return json.dumps(
        {"version": _VERSION, "file": claim.file, "topic_id": claim.topic_id, "lanes": claim.lanes}
    ).encode()


def decode_claim(number: int, text: bytes) -> Claim:
    """Decode a claim; PeerError if it is damaged, or a newer release's."""
    try:
        value = json.loads(text)
        if value["version"] != _VERSION:
            raise PeerError(f"the audit table was written by a newer release: write {number} has another version")
        lanes = {int(lane): int(offset) for lane, offset in value["lanes"].items()}
        return Claim(number, str(value["file"]), str(value["topic_id"]), lanes)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise PeerError(f"the audit table's claim {number} is damaged: {error_text(error)}") from error


class Listing(NamedTuple):
    """The files of a table, by their names and sizes."""

    files: tuple[DataFile, ...]
    claims: tuple[int, ...]

    @property
    def holding(self) -> list[DataFile]:
        """The files that hold, in order: those whose writes no merged file of that day has."""
        return [each for each in self.files if not any(_covers(other, each) for other in self.files)]

    @property
    def replaced(self) -> list[DataFile]:
        """The files that a merged one has replaced."""
        return [each for each in self.files if any(_covers(other, each) for other in self.files)]

    @property
    def last(self) -> DataFile | None:
        """The file of the newest write; it holds the state."""
        return max(self.holding, key=lambda each: each.last, default=None)

    def to_merge(self, today: date) -> list[DataFile]:
        """Files of one day to merge next; empty if there are none. The newest write's stays as it is."""
        newest = self.last
        for day, files in itertools.groupby(sorted(self.holding), key=lambda each: each.day):
            for small in _runs_of_small(files, newest):
                if len(small) >= FILES_A_MERGE or (day < today and len(small) > 1):
                    return small
        return []

    def expired(self, today: date, days: int) -> list[DataFile]:
        """The files of days before the last ``days`` (0: none); the newest write's stays, since it holds the state."""
        if not days:
            return []
        newest = self.last
        return [each for each in self.files if each.day < today - timedelta(days=days) and each != newest]

    def old_claims(self) -> Sequence[int]:
        """Claims that nobody makes again."""
        return self.claims[:-CLAIMS_KEPT]


def _covers(other: DataFile, each: DataFile) -> bool:
    wider = other.last - other.first > each.last - each.first
    return wider and other.day == each.day and other.first <= each.first and each.last <= other.last


def _runs_of_small(files: Iterable[DataFile], newest: DataFile | None) -> Iterator[list[DataFile]]:
    """The small files of a day, in runs without another file of that day between them, each up to a size."""
    run: list[DataFile] = []
    for each in files:
        stays = each == newest or each.size >= MERGED_BYTES_MAX
        if run and (stays or sum(other.size for other in run) + each.size > MERGED_BYTES_MAX):
            yield run
            run = []
        if not stays:
            run.append(each)
    yield run


def listing(sizes: Mapping[str, int]) -> Listing:
    """The listing of names with their sizes; other names are left out."""
    files = (
        DataFile(date.fromisoformat(found[1]), int(found[2]), int(found[3]), size)
        for name, size in sizes.items()
        if (found := _FILE.fullmatch(name))
    )
    return Listing(tuple(sorted(files, key=lambda each: (each.first, each.last))), tuple(_claims(sizes)))


def _claims(names: Iterable[str]) -> list[int]:
    numbers = (name.removeprefix(f"{CLAIMS}/") for name in names if name.startswith(f"{CLAIMS}/"))
    return sorted(int(number) for number in numbers if len(number) == 20 and number.isdigit())
