"""Invariant L: where each record lies at the source and in its copy, and what the maps of offsets say of it."""

import uuid
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.position import UNKNOWN, Position
from appliance.link.model.translation import TranslationState
from tests.simulation.log import Entry, Log, Record
from tests.simulation.truth import Truth

ENDLESS = 2**63


@dataclass(slots=True)
class Places:
    """The records of one copy in order: their offsets there, and their source topic's id and offsets.

    ``is_whole`` as long as nothing has befallen the copy by which a map may have a hole: then no offset is unknown.
    """

    copies: list[int] = field(default_factory=list)
    ids: list[uuid.UUID] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    is_whole: bool = True
    lost_from: int = ENDLESS
    noticed_from: int = ENDLESS
    """The least offset from which on the copy has ever lost everything; and that which its position knows of."""
    lost_source: int = ENDLESS
    """The least source offset of the records that the copy has lost, since the operator took it as it was."""

    def add(self, copied: Sequence[int], source_id: uuid.UUID, sources: Sequence[int]) -> None:
        """Records that were copied; one that was lost before it was committed lies nowhere."""
        for copy, source in zip(copied, sources, strict=True):
            if copy >= 0:
                self.copies.append(copy)
                self.ids.append(source_id)
                self.sources.append(source)
            else:
                self.lost_source = min(source, self.lost_source)

    def lose(self, end: int) -> None:
        """The copy has lost everything from there on."""
        at = bisect_left(self.copies, end)
        self.lost_source = min([self.lost_source, *self.sources[at:]])
        del self.copies[at:], self.ids[at:], self.sources[at:]
        self.is_whole, self.lost_from = False, min(end, self.lost_from)


class Translations:
    """The places of all copies, and the check of the maps against them; ``violated`` raises what it is told."""

    def __init__(self, violated: Callable[[str], None]) -> None:
        self.checked = 0
        """Offsets of which a translation was held against the logs."""
        self._places: dict[Log, Places] = {}
        self._violated = violated

    def places(self, log: Log) -> Places:
        """The places of a copy."""
        return self._places.setdefault(log, Places())

    def copied(
        self, log: Log, position: Position, copied: Sequence[tuple[int, Record]], sources: Sequence[int]
    ) -> None:
        """Records commit in a copy that are those at these offsets of the source."""
        self.places(log).add([offset for offset, _ in copied], position.source_id, sources)

    def written(self, log: Log, pending: Sequence[Entry]) -> None:
        """A transaction's batches in a copy.

        Of several that strangers have written between, or before since the lane looked last, nobody knows the places.
        A stranger's batch may lie between the lane's previous batch and its marker.
        """
        if len(pending) > 1:
            first = log.index(pending[0].base)
            between = log.entries[first : first + len(pending)] != list(pending)
            earlier = (entry.producer for entry in reversed(log.entries[:first]) if not entry.marker)
            if between or next(earlier, pending[0].producer) != pending[0].producer:
                self.places(log).is_whole = False

    def noticed(self, log: Log | None) -> None:
        """A position commits that says that its copy has lost something (invariant J)."""
        if log is not None:
            self.places(log).noticed_from = self.places(log).lost_from

    def befell(self, log: Log | None) -> None:
        """Something has happened to a copy by which its map may have a hole: a gap, the operator's word, a loss."""
        if log is not None:
            self.places(log).is_whole = False

    def check(
        self, maps: OffsetMaps, partition: Partition, position: Position, log: Log, truth: Truth, at_rest: bool
    ) -> None:
        """Hold every translation of a partition, as the maps were read now, against both logs.

        ``at_rest`` they hold no more than was read: a map that may have holes can be judged too, and of one that has
        none nothing is unknown. Before that the broker that was asked may not have heard of the maps' topic yet.
        """
        if position.next_offset == UNKNOWN or maps.failure(partition):
            return
        places = self.places(log)
        if places.is_whole:
            self._check_whole(maps, partition, position, log, places, at_rest)
        elif at_rest and not truth.log.removed:
            self._check_known(maps, partition, position, log, truth)

    def _check_whole(
        self, maps: OffsetMaps, partition: Partition, position: Position, log: Log, places: Places, complete: bool
    ) -> None:
        """Each translation from the first copied record on leads to the record that follows; if ``complete`` all do."""
        copies, sources = places.copies, places.sources
        count = bisect_left(sources, position.next_offset)
        for offset in range(sources[0], position.next_offset + 1) if count else ():
            at, found = bisect_left(sources, offset), maps.translate(partition, offset, position.source_id)
            least, most = copies[at - 1] + 1 if at else 0, copies[at] if at < len(copies) else ENDLESS
            if complete if found.offset is None else not least <= found.offset <= most:
                self._violated(f"L: {partition} offset {offset} lies at {least} to {most} of {log}: {found}")
        for at in range(copies[0], copies[count - 1] + 1) if count else ():
            back, expected = maps.reverse(Partition(log.topic, log.number), at), sources[bisect_left(copies, at)]
            if back.offset != expected and (complete or back.offset is not None):
                self._violated(f"L: offset {at} of {log} comes from {expected} of {partition}: {back}")
        self.checked += position.next_offset

    def _check_known(self, maps: OffsetMaps, partition: Partition, position: Position, log: Log, truth: Truth) -> None:
        """Where a map may have holes, a translation is exact or unknown."""
        places = self.places(log)

        def first(copy: int) -> int | None:
            """The source offset of the first copied record there or later, -1 of another topic's."""
            at = bisect_left(places.copies, copy)
            if at == len(places.copies):
                return None
            return places.sources[at] if places.ids[at] == position.source_id else -1

        for offset in range(position.next_offset + 1):
            found = maps.translate(partition, offset, position.source_id)
            at = bisect_left(truth.offsets, offset)
            following = truth.offsets[at] if at < len(truth.offsets) else position.next_offset
            if found.offset is not None and first(found.offset) != (
                following if following < position.next_offset else None
            ):
                self._violated(f"L: {partition} offset {offset}, {following} follows: {found}, {first(found.offset)}")
        for copy in range(log.end + 1):
            back, source = maps.reverse(Partition(log.topic, log.number), copy), first(copy)
            if back.state is TranslationState.EXACT and back.offset != (
                position.next_offset if source is None else source
            ):
                self._violated(f"L: offset {copy} of {log} comes from {source} of {partition}: {back}")
