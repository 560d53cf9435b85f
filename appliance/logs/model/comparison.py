"""Two streams of one partition, compared: a count and a digest while they are equal, else the first difference.

Where both sides have the same batch, which is what a raw copy leaves, the two are compared as bytes: the records are
neither decompressed nor decoded. Where the copy was rebuilt (tiny batches joined, LogAppendTime, holes), the records of
both sides are decoded, until a batch begins on both sides at once again.

The digest is SHA-256 over the source's batches whose last record was compared, each as::

    codec u8 | baseTimestamp i64 | maxTimestamp i64 | recordsCount u32 | records, as they lie in the log

Batches whose first offsets lie in more than one block of 2^20 offsets have a digest for each block; then the digest is
SHA-256 over these, so that several processes can share a long log.

It depends on the source's log only, so two verifications of one range have the same digest if, and only if, the source
held the same bytes; each of them has compared the destination with these. A digest over records in a canonical form
could be computed from either side, but would require decoding every record, at five times the cost of the rest.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from appliance.kafka.records.batch import CODEC_MASK, HEADER_SIZE, LOG_APPEND_TIME, Batch
from appliance.kafka.records.records import Record
from appliance.listing import counted
from appliance.logs.model.stream import Contents, Decode, Stream, compiled, plain

_DIGESTED = struct.Struct(">BqqI")
_MEANING = CODEC_MASK | LOG_APPEND_TIME
BLOCK_OFFSETS = 1 << 20
"""Number of source offsets of a block, which has a digest of its own."""
_AHEAD = 100
"""Number of records of the other side in which a differing record is searched, to explain the difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first differing record of each side, and the kind of the difference."""

    source_offset: int
    destination_offset: int
    what: str


class Comparison:
    """Compares two streams, and removes equal records from both."""

    def __init__(self, source: Stream, destination: Stream) -> None:
        self._source = source
        self._destination = destination
        self._block = -1
        self._digest = hashlib.sha256()
        self._ended: list[str] = []
        self.records = 0

    @property
    def blocks(self) -> tuple[str, ...]:
        """The digests of the blocks compared so far."""
        return (*self._ended, self._digest.hexdigest())

    @property
    def digest(self) -> str:
        """The digest of the records compared so far, as the module's docstring defines it."""
        return digest(self.blocks)

    def advance(self) -> Difference | None:
        """Compare until one of the streams is empty.

        Raises:
            BatchCorrupt: the records of a batch do not decompress, or do not fit their lengths or count.
        """
        while self._source and self._destination:
            if not self._whole_batches() and (difference := self._records()):
                return difference
        return None

    def _whole_batches(self) -> bool:
        ours, theirs = self._source.whole(), self._destination.whole()
        if ours is None or theirs is None or not same(ours, theirs):
            return False
        self._take(ours.header.records)
        return True

    def _records(self) -> Difference | None:
        decoded = self._decoded(compiled) or self._decoded(plain)
        assert decoded is not None
        ours, theirs = decoded
        left, right = self._source.taken, self._destination.taken
        count = min(len(ours) - left, len(theirs) - right)
        if ours[left : left + count] == theirs[right : right + count]:
            self._take(count)
            return None
        equal = next(number for number in range(count) if ours[left + number] != theirs[right + number])
        if equal:
            self._take(equal)
        return _difference(self._source.ahead(_AHEAD), self._destination.ahead(_AHEAD))

    def _decoded(self, decode: Decode) -> tuple[Contents, Contents] | None:
        """The records of the next batch of each side, in the same form; None if one of them cannot be read so."""
        ours, theirs = self._source.decoded(decode), self._destination.decoded(decode)
        return (ours.contents, theirs.contents) if ours and theirs else None

    def _take(self, count: int) -> None:
        self.records += count
        self._destination.take(count)
        finished = self._source.take(count)
        if finished is not None:
            header = finished.header
            self._enter(header.base_offset // BLOCK_OFFSETS)
            codec = header.attributes & CODEC_MASK
            self._digest.update(_DIGESTED.pack(codec, header.base_timestamp, header.max_timestamp, header.records))
            self._digest.update(finished.data[HEADER_SIZE:])

    def _enter(self, block: int) -> None:
        """Begin a new digest, unless the block is the same, or the first."""
        if self._block not in (-1, block):
            self._ended.append(self._digest.hexdigest())
            self._digest = hashlib.sha256()
        self._block = block


class Run(NamedTuple):
    """Records that follow each other in both logs: the offsets of the first, and their number."""

    source: int
    copy: int
    length: int


class Pairing(Comparison):
    """A comparison that keeps the offsets of equal records, and no digest."""

    def __init__(self, source: Stream, destination: Stream) -> None:
        super().__init__(source, destination)
        self._runs: list[Run] = []

    def runs(self) -> list[Run]:
        """The records that were found equal since the last call."""
        runs, self._runs = self._runs, []
        return runs

    def _take(self, count: int) -> None:
        ours, theirs = self._source.offsets(count), self._destination.offsets(count)
        if isinstance(ours, range) and isinstance(theirs, range):
            self._runs.append(Run(ours[0], theirs[0], count))
        else:
            self._runs += [Run(*pair, 1) for pair in zip(ours, theirs, strict=True)]
        self._destination.take(count)
        self._source.take(count)


def digest(blocks: Sequence[str]) -> str:
    """The digest of all blocks, as the module's docstring defines it."""
    if len(blocks) == 1:
        return blocks[0]
    return hashlib.sha256(b"".join(map(bytes.fromhex, blocks))).hexdigest()


def same(ours: Batch, theirs: Batch) -> bool:
    """True when two batches hold the same records, as far as their bytes show."""
    one, other = ours.header, theirs.header
    return (
        one.length == other.length
        and one.records == other.records
        and one.base_timestamp == other.base_timestamp
        and one.max_timestamp == other.max_timestamp
        and not (one.attributes ^ other.attributes) & _MEANING
        # Bytes objects are compared at memory speed, views one item at a time.
        and bytes(ours.data[HEADER_SIZE:]) == bytes(theirs.data[HEADER_SIZE:])
    )


def _difference(ours: list[Record], theirs: list[Record]) -> Difference:
    """The kind of difference, given the next records of both sides, of which the first ones differ."""
    source, copy = ours[0], theirs[0]
    missing = _place(copy, ours)
    surplus = _place(source, theirs)
    if missing:
        verb = "is" if missing == 1 else "are"
        what = f"{counted(missing, 'record')} from source offset {source.offset:,} on {verb} not at the destination"
    elif surplus:
        what = f"the destination has {counted(surplus, 'record')} more, from its offset {copy.offset:,} on"
    elif source.body == copy.body:
        what = f"at destination offset {copy.offset:,} the time is {copy.timestamp}, not {source.timestamp}"
    else:
        what = f"the destination has another record, at its offset {copy.offset:,}"
    return Difference(source.offset, copy.offset, what)


def _place(sought: Record, records: list[Record]) -> int:
    """The number of records before the sought one; 0 when it is not among them."""
    return next((number for number, record in enumerate(records) if record[1:] == sought[1:]), 0)
