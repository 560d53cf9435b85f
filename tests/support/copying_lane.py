"""A source partition, its copy, and a lane that copies with an offset map, in memory, with all offsets known."""

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from appliance.engine.model import map_growth
from appliance.engine.model.chunk import Chunk, advanced
from appliance.engine.model.map_growth import KnownSegments, MapGrowth, copied_tail, read_tail
from appliance.kafka.records.outgoing import Outgoing
from appliance.kafka.records.records import Record
from appliance.link.model.checkpoint_records import decode, encode_position
from appliance.link.model.offset_map import OffsetMap, Segment, drop, overlay
from appliance.link.model.offset_records import SegmentKey, decode_segment, encode_dropped, encode_segment
from appliance.link.model.offset_tail import MapFilling
from appliance.link.model.position import CopyEnd, Loss, Position, SourcePlace
from appliance.link.model.replicas import Replica
from appliance.link.model.translation import TranslationState

REPLICA = Replica("orders", 0, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
START = Position(REPLICA.source_id, REPLICA.destination_id, 0, 0, copy_end=CopyEnd(0, 0, 1, 0))


@dataclass(slots=True)
class CopyingLane:
    """Both logs: ``source`` is True at the offset of a committed record, and ``copy`` has the source offset of each
    record.

    ``offsets`` is the log of the map's segments. Retention has deleted the copy below ``start``.
    """

    chance: random.Random
    source: list[bool] = field(default_factory=list)
    copy: list[int | None] = field(default_factory=list)
    offsets: list[tuple[SegmentKey, Record]] = field(default_factory=list)
    growth: MapGrowth = field(default_factory=MapGrowth)
    held: Position = START
    start: int = 0

    def produce(self) -> None:
        """Add records at the source, with markers, aborted and compacted records between them."""
        density = self.chance.choice((1.0, 0.9, 0.5))
        self.source += [self.chance.random() < density for _ in range(self.chance.randint(1, 30))]

    def restart(self) -> None:
        """Start the lane again."""
        self.growth = MapGrowth()

    def copy_some(self, strangers: bool = False) -> None:
        """Commit a transaction; other writers may write between its copies."""
        end = self.chance.randint(self.held.next_offset, len(self.source))
        taken = [offset for offset in range(self.held.next_offset, end) if self.source[offset]]
        begin = len(self.copy)
        batches: list[Outgoing] = []
        begins: list[int] = []
        while taken:
            size = self.chance.randint(1, len(taken))
            part, taken = taken[:size], taken[size:]
            if strangers:
                self.copy += [None] * self.chance.randint(0, 2)
            begins.append(len(self.copy))
            self.copy += part
            batches.append(outgoing(part))
        if batches:
            self.copy.append(None)  # the marker
        self._commit(tuple(batches), end, begin, len(self.copy), begins)

    def abort_some(self) -> None:
        """Abort a transaction, whose records and marker take offsets of the copy."""
        self.copy += [None] * self.chance.randint(1, 5)
        self.restart()

    def _commit(
        self, batches: tuple[Outgoing, ...], next_offset: int, begin: int, end: int, begins: Sequence[int] = ()
    ) -> None:
        chunk = Chunk(REPLICA, batches, next_offset, 0)
        after = advanced(self.held, [chunk])
        if batches:
            tail = copied_tail(self.held, [chunk], begin, end, begins)
            after = replace(after, copy_end=CopyEnd(end, 0, 1, 0), tail=tail)
        else:
            after = replace(after, tail=read_tail(self.held, next_offset))
        self.remember(after)

    def remember(self, after: Position, cut: bool = False) -> None:
        """Commit a position, with its effects on the map."""
        grown = self.growth.grow({REPLICA.source: self.held}, {REPLICA: after}, True, [REPLICA] if cut else ())
        self.growth.note_commit(grown)
        for partition, segment in grown.segments:
            record = encode_segment(partition, segment, 1)
            self.offsets.append(((partition, segment.range.copy_from), record))
        _, decoded = decode(encode_position(REPLICA.source, grown.positions[REPLICA], 1))  # type: ignore[misc]
        assert decoded == grown.positions[REPLICA]
        self.held = decoded

    def lose(self) -> None:
        """The copy loses its end, and markers may take the lost offsets. The operator resumes.

        The leader may not know from where on the copy has lost records.
        """
        if self.held.copy_end is None:
            return  # the loss would not be noticed
        end = self.chance.randint(self.start, len(self.copy))
        filled = [None] * self.chance.randint(0, 4)
        lost = any(each is not None for each in self.copy[end:])
        self.copy = self.copy[:end] + filled
        if not lost:
            return
        loss = Loss(end) if self.chance.random() < 0.5 else Loss(len(self.copy), is_known=False)
        self.remember(self.held.stop_shortened("has lost", 1, loss), not loss.is_known)
        assert_exact(self)
        self.restart()
        self.remember(replace(self.held.go_on(), copy_end=None))

    def go_on_elsewhere(self) -> None:
        """Skip a gap, or copy again from an earlier offset, by the operator's command."""
        at = self.chance.randint(0, len(self.source))
        moved = self.held.begin_again(REPLICA.source_id, REPLICA.destination_id, SourcePlace(at, 0))
        if self.chance.random() < 0.5:
            moved = replace(moved, copy_end=None, tail=None)
        self.remember(moved)

    def forget_the_tail(self) -> None:
        """Let an older release write the position once."""
        self.held = replace(self.held, tail=None)

    def expire(self) -> None:
        """Let retention delete some of the copy, and the lane drop some of the segments below its start."""
        self.start = self.chance.randint(self.start, len(self.copy))
        known = KnownSegments()
        known.take([record for _, record in self.offsets], len(self.offsets))
        keys = list(known.below({REPLICA.source: self.start}, self.growth.growing))
        for key in keys[: self.chance.randint(0, len(keys))]:
            self.offsets.append((key, encode_dropped(key, 1)))

    def build(self) -> None:
        """Fill the holes of the map by reading both logs, where the n-th record of one is the n-th of the other."""
        for hole in self.map().holes():
            source_from = max(hole.source_from, 0)
            copies = [
                (at, s) for at, s in enumerate(self.copy) if hole.copy_from <= at < hole.copy_to and s is not None
            ]
            sources = [s for s in range(source_from, hole.source_to) if self.source[s]]
            if (
                hole.source_to <= source_from
                or hole.copy_from < self.start
                or [source for _, source in copies] != sources
            ):
                continue
            filling = MapFilling(source_from, hole.copy_from, map_growth.SEGMENT_BYTES)
            for at, source in copies:
                filling.add(source, at, 1)
            for piece in filling.finished(hole.source_to, hole.copy_to):
                segment = Segment(REPLICA.source_id, REPLICA.destination_id, piece, fills=True)
                self.offsets.append(((REPLICA.source, piece.copy_from), encode_segment(REPLICA.source, segment, 1)))

    def thin(self) -> None:
        """Compact the log: the newest record of each key remains, and older ones of some keys."""
        newest = {key: number for number, (key, _) in enumerate(self.offsets)}
        kept = enumerate(self.offsets)
        self.offsets = [
            (key, record) for number, (key, record) in kept if newest[key] == number or self.chance.random() < 0.5
        ]

    def map(self) -> OffsetMap:
        """The map, as a reader of the log gets it."""
        segments: list[Segment] = []
        for _, record in self.offsets:
            (_, begin), segment = decode_segment(record)
            if segment is None:
                drop(segments, begin)
            else:
                overlay(segments, segment)
        return OffsetMap(segments, self.held)


def outgoing(offsets: list[int]) -> Outgoing:
    """A batch of the records at these source offsets."""
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and sum(runs[-1]) == offset:
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((offset, 1))
    return Outgoing(b"", len(offsets), offsets[0], offsets[-1] + 1, 1, False, tuple(runs) if len(runs) > 1 else ())


def assert_exact(lane: CopyingLane, complete: bool = False) -> int:
    """Require that each translation is right or unknown; return the number of known ones.

    With ``complete`` none is unknown whose copy is there.
    """
    found, there = lane.map(), [source for source in lane.copy[lane.start :] if source is not None]
    least = there[0] if there else lane.held.next_offset
    if lane.start == 0:
        least = 0
    next_offset, known = lane.held.next_offset, 0
    for offset in range(len(lane.source) + 2):
        translation = found.translate(offset)
        if offset > next_offset:
            assert (translation.state, translation.behind) == (TranslationState.AHEAD, offset - next_offset)
            continue
        if complete and offset >= least:
            assert translation.state is TranslationState.EXACT, offset
        if translation.offset is None:
            continue
        known += 1
        following = next((s for s in range(offset, next_offset) if lane.source[s]), None)
        first = next((source for source in lane.copy[translation.offset :] if source is not None), None)
        assert first == following, (offset, translation)
    for at in range(len(lane.copy) + 2):
        translation = found.reverse(at)
        if translation.offset is not None:
            first = next((source for source in lane.copy[at:] if source is not None), None)
            assert translation.offset == (next_offset if first is None else first), (at, translation)
        elif complete and at >= lane.start:
            assert translation.state is TranslationState.AHEAD, at
    return known
