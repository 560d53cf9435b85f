"""The segments in one lane's partition of the topic of the maps, of the source partitions that are wanted."""

from collections.abc import Collection, Sequence

from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record
from appliance.link.model.offset_map import Segment, drop, overlay
from appliance.link.model.offset_records import decode_segment, segment_key


class SegmentLog:
    """The segments before offset ``read_to``; -1: nothing has been read yet."""

    def __init__(self) -> None:
        self.read_to = -1
        self._wanted: frozenset[Partition] | None = frozenset()
        self._segments: dict[Partition, list[Segment]] = {}
        self._damaged: dict[Partition, dict[int, PeerError]] = {}

    def segments(self, partition: Partition) -> Sequence[Segment]:
        """The segments of a source partition, in the order of the copy."""
        return self._segments.get(partition, ())

    def damage(self, partition: Partition) -> PeerError | None:
        """The reason that a source partition's map cannot be read; None where it can."""
        return next(iter(self._damaged.get(partition, {}).values()), None)

    def want(self, wanted: Collection[Partition] | None) -> Collection[Partition]:
        """Keep the segments of these source partitions, or of all; returns those whose segments are known no more.

        Those of another partition are not known unless everything is read anew.
        """
        before, self._wanted = self._wanted, None if wanted is None else frozenset(wanted)
        if before is not None and (self._wanted is None or self._wanted - before):
            return self.begin_anew()
        return self._forget([of for of in self._known() if self._wanted is not None and of not in self._wanted])

    def begin_anew(self) -> Collection[Partition]:
        """Forget all, to be read from the log's start; returns the source partitions of which something was known."""
        self.read_to = -1
        return self._forget(self._known())

    def take(self, record: Record) -> Partition | None:
        """Take in the next record; the source partition whose map it is about, None of one that is not wanted.

        Raises:
            PeerError: it is no segment of anything.
        """
        of, begin = segment_key(record)
        wanted = self._wanted is None or of in self._wanted
        if wanted:
            self._add(of, begin, record)
        self.read_to = record.offset + 1
        return of if wanted else None

    def _add(self, of: Partition, begin: int, record: Record) -> None:
        known, damaged = self._segments.setdefault(of, []), self._damaged.pop(of, {})
        damaged.pop(begin, None)
        try:
            segment = decode_segment(record)[1]
        except PeerError as error:  # the others' maps can be read all the same
            damaged[begin] = error
        else:
            if segment is None:
                drop(known, begin)
            else:
                overlay(known, segment)
        if damaged:
            self._damaged[of] = damaged

    def _known(self) -> list[Partition]:
        return list({*self._segments, *self._damaged})

    def _forget(self, partitions: Collection[Partition]) -> Collection[Partition]:
        for of in partitions:
            self._segments.pop(of, None)
            self._damaged.pop(of, None)
        return partitions
