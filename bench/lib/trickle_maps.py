"""The maps of offsets that a trickle makes: what it writes into a partition, and the bytes of its map.

The map is made by the code of a lane: the same tails, segments and records. A transaction of the lane holds one batch,
since little comes at a time.
"""

import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from appliance.engine.model.chunk import Chunk, advanced
from appliance.engine.model.map_growth import MapGrowth, copied_tail
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.records import Record, body, pack
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_records import encode_segment
from appliance.link.model.position import CopyEnd, Position
from appliance.link.model.replicas import Replica

VALUE_BYTES = 500

Kind = Callable[[random.Random], "Write"]
"""Decides by chance what is written next."""

_IDS = uuid.UUID(int=2**127 + 1), uuid.UUID(int=2**127 + 2)
_ABORTED_OF = 5
_MARKER_BYTES = 78
_BATCH_BYTES = 61


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a producer: its number of records; with ``marker`` a transaction, which may be ``aborted``."""

    records: int
    marker: bool = False
    aborted: bool = False


def plain(_: random.Random) -> Write:
    """A record by itself."""
    return Write(1)


def transaction(chance: random.Random) -> Write:
    """A transaction of one to five records, of which every fifth is aborted."""
    return Write(chance.randint(1, 5), True, chance.randrange(_ABORTED_OF) == 0)


@dataclass(slots=True)
class MapBytes:
    """The bytes that there are because of maps: those ``kept`` by compaction, and all that were ``written``.

    ``copied`` are those of the copies' batches.
    """

    kept: int = 0
    written: int = 0
    copied: int = 0
    _newest: dict[object, int] = field(default_factory=dict)

    def tail(self, key: object, size: int) -> None:
        """Count the tail in a position record, which takes the place of the one before."""
        self._count(key, size)

    def segments(self, records: Mapping[object, Record]) -> None:
        """Count the segments of a transaction, and the marker that it leaves in their partition."""
        if records:
            self.written += _MARKER_BYTES + _BATCH_BYTES
        for key, record in records.items():
            self._count(key, _BATCH_BYTES + len(record.body))

    def _count(self, key: object, size: int) -> None:
        self.written += size
        self.kept += size - self._newest.get(key, 0)
        self._newest[key] = size


def tail_bytes(partition: Partition, position: Position) -> int:
    """The size of a position's record that is its map's tail."""
    without = replace(position, tail=None)
    return len(encode_position(partition, position, 0).body) - len(encode_position(partition, without, 0).body)


def map_of(writes: Iterable[Write], found: MapBytes, replica: Replica) -> None:
    """Copy what was written into one partition, each write in a transaction of its own, and count its map."""
    held, growth, source, copy = Position(*_IDS, 0, 0, copy_end=CopyEnd(0, 0, 1, 0)), MapGrowth(), 0, 0
    for write in writes:
        first, source = source, source + write.records + write.marker
        if write.aborted:
            continue  # read together with what comes next
        batch = Outgoing(_batch(write.records), write.records, first, first + write.records, 0, True, ())
        chunk = Chunk(replica, (batch,), source, 0)
        begin, copy = copy, copy + write.records + 1
        end = CopyEnd(copy, 0, 1, 0)
        after = advanced(held, [chunk]).written(end, copied_tail(held, [chunk], begin, copy))
        grown = growth.grown({replica.source: held}, {replica: after}, True)
        growth.committed(grown)
        held = grown.positions[replica]
        found.copied += len(batch.data)
        found.tail(replica.source, tail_bytes(replica.source, held))
        found.segments(dict(_segments(grown.segments)))


def _segments(segments: Iterable[tuple[Partition, Segment]]) -> Iterator[tuple[object, Record]]:
    for partition, segment in segments:
        yield (partition, segment.stretch.copy_from), encode_segment(partition, segment, 0)


def _batch(records: int) -> bytes:
    return pack([Record(number, 0, body(None, b"v" * VALUE_BYTES)) for number in range(records)], 0)


def trickle(partitions: int, writes: int, kind: Kind, seed: int) -> MapBytes:
    """The maps of so many partitions, into each of which so many writes of a kind come."""
    chance, found = random.Random(seed), MapBytes()
    for number in range(partitions):
        replica = Replica("bench-trickle", number, "bench-trickle.copy", *_IDS)
        map_of((kind(chance) for _ in range(writes)), found, replica)
    return found
