"""Growth of the offset maps of a lane's partitions, transaction by transaction (``link.model.offset_map``).

A map's tail grows within the position. Once it is large it becomes a segment, in the same transaction, and a new tail
begins. To keep segments few and large, the lane rewrites its newest one since its start with the new runs until it is
full; a lane never reads its own segments.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.engine.model.chunk import Chunk
from appliance.errors import BatchCorrupt, PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_records import SegmentKey, decode_bounds
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica

TAIL_BYTES = 160
"""Size above which a tail becomes a segment, in bytes: every transaction rewrites the tail."""

_TAIL_BYTES_MAX = 16 * TAIL_BYTES
"""Size above which it does in any case, or is dropped where no topic keeps segments."""

SEGMENT_BYTES = 8 * 1024
"""Size of a full segment's groups, before they are compressed."""

_SEGMENTS_A_COMMIT = 16
"""Most segments in one commit: tails of many partitions are full at once where all grow at the same rate."""

_MARKER = 1


@dataclass(frozen=True, slots=True)
class MapUpdate:
    """The positions after a transaction, and the segments that it writes, each by its source partition.

    The maps of ``damaged`` partitions restart; each comes with its fault.
    """

    positions: Mapping[Replica, Position]
    segments: Sequence[tuple[Partition, Segment]] = ()
    damaged: Mapping[Partition, str] = field(default_factory=dict)


def copied_tail(
    before: Position, chunks: Sequence[Chunk], begin: int, end: int, begins: Sequence[int] = ()
) -> OffsetTail:
    """The tail after a transaction that wrote these chunks to the copy from ``begin`` on; ``end`` is past its marker.

    ``begins`` are the offsets of the batches in the copy; they are needed only where somebody else wrote between them.
    """
    batches = [batch for chunk in chunks for batch in chunk.batches]
    tail, source_to = _tail(before, begin), chunks[-1].next_offset
    if not foreign_offsets(chunks, begin, end):
        return tail.copied(batches, begin, source_to, end)
    for batch, at in zip(batches, begins, strict=True):
        tail = tail.copied([batch], at, batch.next_offset, at + batch.records)
    return tail._replace(source_to=source_to, copy_to=end)


def interleaved_tail(
    before: Position, runs: Iterable[tuple[int, int, int]], begin: int, source_to: int, copy_to: int
) -> OffsetTail:
    """The tail after a transaction that wrote runs from several sources to a copy, from ``begin`` to ``copy_to``.

    Each of this source's ``runs`` has the offsets of its first record, at the source and in the copy, and its length.
    """
    tail = _tail(before, begin)
    for run in runs:
        tail = tail.with_run(*run)
    return tail._replace(source_to=source_to, copy_to=copy_to)


def foreign_offsets(chunks: Sequence[Chunk], begin: int, end: int) -> int:
    """Number of offsets from ``begin`` to ``end``, past a transaction's marker, that hold no record of these chunks."""
    return end - _MARKER - begin - sum(chunk.records for chunk in chunks)


def read_tail(before: Position, next_offset: int) -> OffsetTail | None:
    """The tail after uncopied source offsets; None as long as the copy's end is unknown."""
    if before.copy_end is None and (before.tail is None or before.tail.source_to != before.next_offset):
        return None
    return _tail(before).read_to(next_offset)


def _tail(before: Position, begin: int = 2**63) -> OffsetTail:
    """The tail of a position, or a new one; the copy is written from ``begin`` on."""
    tail, end = before.tail, before.copy_end
    if tail is not None and tail.copy_to <= begin and tail.source_to == before.next_offset:
        return tail
    return OffsetTail.begin(before.next_offset, min(end.offset, begin) if end else begin)


class MapGrowth:
    """The growth of the maps of one lane's partitions since its start."""

    def __init__(self) -> None:
        self._newest: dict[Partition, Segment] = {}

    def grow(
        self,
        before: Mapping[Partition, Position],
        after: Mapping[Replica, Position],
        keeps_segments: bool,
        cut: Collection[Replica] = (),
    ) -> MapUpdate:
        """Make segments of large tails, and of tails that are not continued.

        ``before`` are the last committed positions, ``after`` the next ones. Of those to ``cut`` only the new tail
        holds: a segment at the copy's beginning says so.
        """
        positions = dict(after)
        segments: list[tuple[Partition, Segment]] = []
        damaged: dict[Partition, str] = {}
        newest: dict[Partition, Position] = {}
        for replica, position in after.items():
            previous, tail = newest.get(replica.source) or before.get(replica.source), position.tail
            newest[replica.source] = position
            if replica in cut:
                ids = position.source_id, position.destination_id
                segments.append((replica.source, Segment(*ids, OffsetTail.begin(0, 0))))
                continue
            if previous is not None and _goes_on(previous.tail, tail):
                continue  # the usual case: this runs thousands of times a second
            may_settle = keeps_segments and len(segments) < _SEGMENTS_A_COMMIT
            try:
                own, positions[replica] = self._grow_one(replica.source, previous, position, may_settle)
            except (ValueError, LookupError, ArithmeticError, BatchCorrupt) as error:
                damaged[replica.source] = repr(error)
                own, positions[replica] = self._restarted(replica.source, previous, position)
            segments += own
        return MapUpdate(positions, segments if keeps_segments else (), damaged)

    def _restarted(
        self, partition: Partition, before: Position | None, position: Position
    ) -> tuple[list[tuple[Partition, Segment]], Position]:
        """The position with a map that begins where it ends, and a segment that marks where older ones were cut."""
        self._newest.pop(partition, None)
        tail, ids = position.tail, (position.source_id, position.destination_id)
        begins = [each.copy_from for each in (tail, before.tail if before else None) if each is not None]
        restarted = OffsetTail.begin(tail.source_to, tail.copy_to) if tail is not None else None
        cut = OffsetTail.begin(position.next_offset, min(begins))
        return [(partition, Segment(*ids, cut))], replace(position, tail=restarted)

    def _grow_one(
        self, partition: Partition, before: Position | None, position: Position, may_settle: bool
    ) -> tuple[list[tuple[Partition, Segment]], Position]:
        """The segments of one partition, and its position."""
        tail, segments = position.tail, []
        if before is not None and before.tail is not None and _is_lost(before.tail, tail):
            segments += self._settled(partition, before, before.tail)
        if before is not None and tail is not None and _cuts(before.tail, tail):
            segments += self._settled(partition, position, tail)
        if tail is not None and len(tail.settled) > TAIL_BYTES and (may_settle or len(tail.settled) > _TAIL_BYTES_MAX):
            segments += self._settled(partition, position, tail)
            position = replace(position, tail=OffsetTail.begin(tail.source_to, tail.copy_to))
        return segments, position

    @property
    def growing(self) -> set[SegmentKey]:
        """The segments that may be rewritten, grown."""
        return {(partition, segment.range.copy_from) for partition, segment in self._newest.items()}

    def note_commit(self, grown: MapUpdate) -> None:
        """The transaction is committed."""
        self._newest.update(grown.segments)

    def _settled(self, partition: Partition, position: Position, tail: OffsetTail) -> list[tuple[Partition, Segment]]:
        """The segments of a position's tail; the first may be the newest one, grown."""
        ids, newest = (position.source_id, position.destination_id), self._newest.get(partition)
        same = newest is not None and (newest.source_id, newest.destination_id) == ids
        if newest and same and tail.continues(newest.range) and len(newest.range.packed) < SEGMENT_BYTES:
            tail = newest.range.joined(tail)
        return [(partition, Segment(*ids, piece)) for piece in tail.pieces(SEGMENT_BYTES)]


def _goes_on(previous: OffsetTail | None, tail: OffsetTail | None) -> bool:
    """True when a tail is the earlier one, grown, and not large."""
    if tail is None or previous is None:
        return tail is previous
    return tail[:2] == previous[:2] and len(tail.settled) <= TAIL_BYTES


def _is_lost(previous: OffsetTail, tail: OffsetTail | None) -> bool:
    """True when the tail that replaces another one lacks its runs, or its cut of older segments."""
    if tail is None or tail.copy_from > previous.copy_from:
        return True
    return not previous.is_empty and (previous.source_from, previous.copy_from) != (tail.source_from, tail.copy_from)


def _cuts(previous: OffsetTail | None, tail: OffsetTail) -> bool:
    """True when a tail only says that the copy was cut."""
    return tail.is_empty and (previous is None or tail.copy_from < previous.copy_to)


class KnownSegments:
    """The segments in a lane's partition of the topic of the maps before offset ``read_to``, by their bounds alone."""

    def __init__(self) -> None:
        self.read_to = -1
        self._bounds: dict[Partition, dict[int, int]] = {}
        """The offsets of the copy at which the segments of each source partition begin, and end."""

    def take(self, records: Iterable[Record], following: int) -> None:
        """Add the following records, up to an offset; a damaged one is skipped."""
        for record in records:
            try:
                (partition, begin), copy_to = decode_bounds(record)
            except PeerError:
                continue
            own = self._bounds.setdefault(partition, {})
            own.pop(begin, None)
            if copy_to is not None:
                own[begin] = copy_to
        self.read_to = following

    @property
    def partitions(self) -> Collection[Partition]:
        """The source partitions with segments."""
        return {partition for partition, own in self._bounds.items() if own}

    def below(self, starts: Mapping[Partition, int], kept: Collection[SegmentKey]) -> Iterator[SegmentKey]:
        """The segments below the starts of the copies, by source partition, except those ``kept``.

        A segment stays as long as an older one that it has cut, which would hold again without it.
        """
        for partition, start in starts.items():
            own = self._bounds.get(partition, {})
            older_end = 0
            for begin, end in own.items():
                if end > start or (partition, begin) in kept:
                    older_end = max(older_end, end)
                elif begin >= older_end:
                    yield partition, begin
